"""The simulated Cluster API: Clusters come, are upgraded and go; hooks are called in the order of Cluster API."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.simulation.capi.world import (
    NAMESPACE,
    PLANES,
    CapiWorld,
    capi_world,
    condition,
    is_ready,
    pending,
    reference,
    typed,
)

from hortus.kube import Client, Resource
from hortus.kube.errors import NotFound
from hortus.simulation.capi.kinds import CLUSTERS
from hortus.simulation.capi.settings import CapiSettings
from hortus.simulation.capi.topology import TopologyError, next_version, topology_of
from hortus.simulation.capi.workload import SECRETS, logical_name
from hortus.simulation.garden.kinds import LOGICAL_CLUSTERS
from hortus.testing.apiserver import TestServer, started_apiserver
from hortus.testing.waiting import wait_gone

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


@pytest.fixture
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[CapiWorld]:
    async with capi_world(server) as made:
        yield made


async def _client_of(here: CapiWorld, name: str, folder: Path) -> Client:
    secret = await here.client.get(SECRETS, f"{name}-kubeconfig", NAMESPACE)
    file = folder / name
    file.write_bytes(base64.b64decode(secret["data"]["value"]))
    return Client.from_kubeconfig(file)


async def test_a_cluster_gets_its_parts_and_a_kubeconfig_that_works(here: CapiWorld, tmp_path: Path) -> None:
    await here.cluster_class()
    await here.cluster("shop")
    async with here.controllers():
        cluster = await here.until("shop", is_ready)
        assert cluster["spec"]["controlPlaneRef"]["kind"] == "KubeadmControlPlane"
        assert cluster["spec"]["infrastructureRef"]["kind"] == "DockerCluster"
        assert cluster["spec"]["controlPlaneEndpoint"]["port"] == 6443
        assert cluster["status"]["phase"] == "Provisioned"
        plane = await here.client.get(PLANES, "shop", NAMESPACE)
        assert plane["spec"] == {"from": "quick", "version": "v1.33.1"}
        async with await _client_of(here, "shop", tmp_path) as inside:
            assert (await inside.list(CONFIG_MAPS, "kube-system")).items is not None


async def test_the_form_of_v1beta2_is_read_and_written(here: CapiWorld) -> None:
    await here.cluster_class()
    topology = {"classRef": {"name": "quick"}, "version": "v1.33.1"}
    await here.client.create(CLUSTERS, typed(CLUSTERS, "new", {"topology": topology}))
    async with here.controllers():
        cluster = await here.until("new", is_ready)
    assert cluster["spec"]["controlPlaneRef"] == {
        "apiGroup": "controlplane.cluster.x-k8s.io",
        "kind": "KubeadmControlPlane",
        "name": "new",
    }


async def test_a_cluster_waits_for_its_class(here: CapiWorld) -> None:
    await here.cluster("early")
    async with here.controllers():
        cluster = await here.until("early", lambda obj: condition(obj, "TopologyReconciled").get("status") == "False")
        assert "quick does not exist" in condition(cluster, "TopologyReconciled")["message"]
        await here.cluster_class()
        await here.until("early", is_ready)


async def test_hooks_are_called_once_and_in_order(here: CapiWorld) -> None:
    await here.cluster_class()
    here.extension.held = {"beforeclusterupgrade"}
    async with here.controllers():
        await here.extension_config()
        await here.cluster("shop")
        await here.until("shop", lambda obj: is_ready(obj) and not pending(obj))
        await here.move("shop", "v1.34.1")
        found = await here.until(
            "shop", lambda obj: "blocking" in condition(obj, "TopologyReconciled").get("message", "")
        )
        assert (await here.client.get(PLANES, "shop", NAMESPACE))["spec"]["version"] == "v1.33.1"
        assert condition(found, "TopologyReconciled")["reason"] == "LifecycleHookBlocking"
        here.extension.held = set()
        await here.until("shop", lambda obj: is_ready(obj) and bool(here.extension.called("AfterClusterUpgrade")))
    names = [name for name, _ in here.extension.calls]
    assert names == [
        "aftercontrolplaneinitialized",
        "beforeclusterupgrade",
        "afterclusterupgrade",
    ]
    before = here.extension.called("BeforeClusterUpgrade")[0]
    assert (before["fromKubernetesVersion"], before["toKubernetesVersion"]) == ("v1.33.1", "v1.34.1")
    assert before["cluster"]["metadata"]["name"] == "shop"


async def test_a_failed_hook_is_called_again(here: CapiWorld) -> None:
    await here.cluster_class()
    here.extension.answers["aftercontrolplaneinitialized"] = [{"status": "Failure", "message": "no addon"}] * 2
    async with here.controllers():
        await here.extension_config()
        await here.cluster("shop")
        await here.until("shop", is_ready)
    assert len(here.extension.called("AfterControlPlaneInitialized")) == 3


async def test_a_chain_of_upgrades_asks_before_it_once_and_after_it_once(here: CapiWorld) -> None:
    await here.cluster_class(kubernetesVersions=["v1.33.1", "v1.34.0", "v1.34.2", "v1.35.0", "v1.36.0"])
    async with here.controllers():
        await here.extension_config()
        await here.cluster("shop")
        await here.until("shop", is_ready)
        await here.move("shop", "v1.36.0")
        await here.until("shop", lambda obj: bool(here.extension.called("AfterClusterUpgrade")) and is_ready(obj))
        assert (await here.client.get(PLANES, "shop", NAMESPACE))["status"]["version"] == "v1.36.0"
    assert len(here.extension.called("BeforeClusterUpgrade")) == 1
    assert len(here.extension.called("AfterClusterUpgrade")) == 1


async def test_an_upgrade_survives_a_restart_of_the_simulation(here: CapiWorld) -> None:
    await here.cluster_class()
    async with here.controllers():
        await here.cluster("shop")
        await here.until("shop", is_ready)
    async with here.controllers(CapiSettings(upgrade=3600.0)):
        await here.move("shop", "v1.34.1")
        await here.until("shop", lambda obj: "in progress" in condition(obj, "TopologyReconciled").get("message", ""))
    async with here.controllers():
        await here.until("shop", is_ready)
        assert (await here.client.get(PLANES, "shop", NAMESPACE))["status"]["version"] == "v1.34.1"


async def test_a_deleted_cluster_leaves_nothing(here: CapiWorld) -> None:
    await here.cluster_class()
    async with here.controllers():
        cluster = await here.cluster("shop")
        await here.until("shop", is_ready)
        await here.client.delete(CLUSTERS, "shop", NAMESPACE)
        await wait_gone(here.client, CLUSTERS, "shop", NAMESPACE)
    del cluster
    for resource, name, namespace in (
        (PLANES, "shop", NAMESPACE),
        (SECRETS, "shop-kubeconfig", NAMESPACE),
        (LOGICAL_CLUSTERS, "capi--stacks--shop", ""),
    ):
        with pytest.raises(NotFound):
            await here.management.get(resource, name, namespace)


async def test_a_classic_cluster_is_left_alone(here: CapiWorld) -> None:
    spec = {"infrastructureRef": reference(PLANES, "own")}
    made = await here.client.create(CLUSTERS, typed(CLUSTERS, "classic", spec))
    await here.cluster_class()
    await here.cluster("shop")
    async with here.controllers():
        await here.until("shop", is_ready)
    found = await here.client.get(CLUSTERS, "classic", NAMESPACE)
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_more_than_one_minor_version_needs_versions_of_the_class() -> None:
    named = {"metadata": {"name": "quick"}, "spec": {}}
    assert next_version("v1.33.1", "v1.34.0", named) == "v1.34.0"
    with pytest.raises(TopologyError, match=r"kubernetesVersions of ClusterClass quick names none of 1\.34"):
        next_version("v1.33.1", "v1.35.0", named)
    with pytest.raises(TopologyError, match="later version"):
        next_version("v1.33.1", "v1.32.0", named)
    with pytest.raises(TopologyError, match="is no version"):
        next_version("v1.33.1", "latest", named)


def test_the_namespace_of_a_class_is_read_in_both_forms() -> None:
    def of(topology: object) -> object:
        found = topology_of({"metadata": {"name": "a", "namespace": "here"}, "spec": {"topology": topology}})
        assert found is not None
        return str(found.class_key)

    assert of({"class": "c", "classNamespace": "there", "version": "v1.33.1"}) == "there/c"
    assert of({"classRef": {"name": "c", "namespace": "there"}, "version": "v1.33.1"}) == "there/c"
    assert of({"class": "c", "version": "v1.33.1"}) == "here/c"


def test_a_long_name_of_a_cluster_still_names_a_logical_cluster() -> None:
    from hortus.kube.objects import ObjectKey

    names = {logical_name(ObjectKey("n" * 40, "c" * 40 + end)) for end in ("a", "b")}
    assert len(names) == 2
    assert all(len(name) <= 63 for name in names)
