"""The hook server over HTTPS: its answers to Cluster API, and the hook that it notes in the ClusterAddon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.domains.stacks.addons.releases import config_map
from tests.domains.stacks.addons.world import CONFIG_MAPS, HOME, AddonWorld, addon_world
from tests.waiting import until

from hortus.domains import free_port
from hortus.domains.stacks.capi import CLUSTERS
from hortus.domains.stacks.hooks.composition import SECRET, add_hooks
from hortus.domains.stacks.hooks.registration import EXTENSION_CONFIGS
from hortus.domains.stacks.releases.library import LocalLibrary
from hortus.domains.stacks.releases.stores import ReleaseFolder
from hortus.domains.stacks.types import CLUSTER_ADDONS, ClusterAddon
from hortus.engine import Manager
from hortus.engine.health import Address
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.serving import HttpsServer, ServingEndpoint, read_pair
from hortus.kube import Client
from hortus.kube.access import Access
from hortus.kube.clock import SystemClock
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.simulation.capi.definitions import CRDS
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for

ROOT = "/hooks.runtime.cluster.x-k8s.io/v1alpha1"
CLASS = "docker-plain-1-33-v1"
BEFORE = "/beforeclusterupgrade/before-cluster-upgrade"
AFTER = "/afterclusterupgrade/after-cluster-upgrade"
INITIALIZED = "/aftercontrolplaneinitialized/after-control-plane-initialized"


class HookWorld:
    """A hook server next to a management cluster."""

    def __init__(self, addons: AddonWorld, server: HttpsServer, ca: bytes) -> None:
        self.addons = addons
        self.server = server
        self.ca = ca

    async def post(self, path: str, body: Any) -> Object:
        access = Access(server=f"https://127.0.0.1:{self.server.port}", ca=self.ca)
        async with Client(access) as client:
            answer = await client.request("POST", f"{ROOT}{path}", orjson.dumps(body))
        found: Object = orjson.loads(answer.body)
        return found

    async def call(self, path: str, class_name: str = CLASS, name: str = "shop") -> Object:
        cluster = {
            "apiVersion": "cluster.x-k8s.io/v1beta1",
            "kind": "Cluster",
            "metadata": {"name": name, "namespace": HOME},
            "spec": {"topology": {"class": class_name, "version": "v1.33.1"}},
        }
        return await self.post(path, {"cluster": cluster})

    async def addon(self, spec: Object, status: Object | None = None, name: str = "shop") -> None:
        obj = {
            "apiVersion": CLUSTER_ADDONS.api_version,
            "kind": CLUSTER_ADDONS.kind,
            "metadata": {"name": f"cluster-addon-{name}", "namespace": HOME},
            "spec": {"clusterRef": {"kind": "Cluster", "name": name}, **spec},
        }
        await self.addons.client.create(CLUSTER_ADDONS, obj)
        if status is not None:
            await self.addons.client.patch(
                CLUSTER_ADDONS, obj["metadata"]["name"], {"status": status}, HOME, subresource="status"
            )

    async def hook(self) -> str:
        found = await self.addons.client.get(CLUSTER_ADDONS, "cluster-addon-shop", HOME)
        return str(found["spec"].get("hook", ""))


APPLIED = {"conditions": [{"type": "HelmChartApplied", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}


@pytest.fixture
async def here(server: TestServer, tmp_path: Path) -> AsyncIterator[HookWorld]:
    async with addon_world(server, tmp_path) as addons:
        port = free_port()
        async with Client(addons.client.access) as client:
            manager = Manager(client, grace=0.0)
            made = add_hooks(
                manager,
                client=client,
                releases=LocalLibrary(ReleaseFolder(addons.shelf.folder), clock=SystemClock()),
                address=Address("127.0.0.1", port),
                folder=tmp_path / "none",
                endpoint=ServingEndpoint(url=f"https://127.0.0.1:{port}"),
                config="hooks",
                namespace=HOME,
            )
            async with manager.running():
                secret = await wait_for(client, SECRETS, SECRET, HOME)
                await wait_for(client, EXTENSION_CONFIGS, "hooks")
                pair = read_pair(secret)
                assert pair is not None
                await until(lambda: made.port)
                yield HookWorld(addons, made, pair.bundle)


async def test_discovery_lists_three_handlers(here: HookWorld) -> None:
    """A15."""
    answer = await here.post("/discovery", {})
    assert answer["status"] == "Success"
    assert answer["kind"] == "DiscoveryResponse"
    assert {one["name"]: one["requestHook"]["hook"] for one in answer["handlers"]} == {
        "before-cluster-upgrade": "BeforeClusterUpgrade",
        "after-cluster-upgrade": "AfterClusterUpgrade",
        "after-control-plane-initialized": "AfterControlPlaneInitialized",
    }


async def test_the_extension_config_trusts_the_server(here: HookWorld) -> None:
    config = await here.addons.client.get(EXTENSION_CONFIGS, "hooks")
    assert config["spec"]["clientConfig"]["url"] == f"https://127.0.0.1:{here.server.port}"
    secret = await here.addons.client.get(SECRETS, SECRET, HOME)
    assert config["spec"]["clientConfig"]["caBundle"] == secret["data"]["ca.crt"]


async def test_an_upgrade_is_held_until_the_addons_are_installed(here: HookWorld) -> None:
    """A15."""
    await here.addon({"clusterStack": "docker-plain-1-32-v1"}, APPLIED)
    for _ in range(2):
        answer = await here.call(BEFORE)
        assert (answer["status"], answer["retryAfterSeconds"]) == ("Success", 10)
        assert "cluster-addon-shop" in answer["message"]
        assert await here.hook() == "BeforeClusterUpgrade"
    await here.addons.client.patch(
        CLUSTER_ADDONS, "cluster-addon-shop", {"spec": {"hook": None, "clusterStack": CLASS}}, HOME
    )
    answer = await here.call(BEFORE)
    assert (answer["status"], answer["retryAfterSeconds"]) == ("Success", 0)
    assert await here.hook() == ""


async def test_addons_of_the_class_that_are_not_applied_hold_an_upgrade(here: HookWorld) -> None:
    await here.addon({"clusterStack": CLASS}, {"conditions": []})
    assert (await here.call(BEFORE))["retryAfterSeconds"] == 10


async def test_an_initialized_control_plane_is_noted_once(here: HookWorld) -> None:
    await here.addon({})
    assert (await here.call(INITIALIZED))["status"] == "Success"
    assert await here.hook() == "AfterControlPlaneInitialized"
    await here.addons.client.patch(
        CLUSTER_ADDONS, "cluster-addon-shop", {"spec": {"hook": None, "clusterStack": CLASS}}, HOME
    )
    await here.addons.client.patch(
        CLUSTER_ADDONS, "cluster-addon-shop", {"status": APPLIED}, HOME, subresource="status"
    )
    assert (await here.call(INITIALIZED))["status"] == "Success"
    assert await here.hook() == ""


async def test_the_hook_after_an_upgrade_is_noted_where_the_release_has_stages_for_it(here: HookWorld) -> None:
    charts = {"a": [config_map("a")]}
    here.addons.shelf.staged(CLASS, charts, {"AfterClusterUpgrade": [{"name": "a", "action": "apply"}]})
    other = "docker-plain-1-33-v2"
    here.addons.shelf.staged(other, charts, {"BeforeClusterUpgrade": [{"name": "a", "action": "apply"}]})
    await here.addon({"clusterStack": CLASS}, APPLIED)
    assert (await here.call(AFTER, other))["status"] == "Success"
    assert await here.hook() == ""
    assert (await here.call(AFTER))["status"] == "Success"
    assert await here.hook() == "AfterClusterUpgrade"


async def test_a_missing_addon_is_a_failure_that_names_it(here: HookWorld) -> None:
    answer = await here.call(BEFORE)
    assert answer["status"] == "Failure"
    assert "ClusterAddon stacks/cluster-addon-shop does not exist yet" in answer["message"]


async def test_a_hook_that_cannot_be_noted_is_a_failure(here: HookWorld) -> None:
    """Cluster API calls again after a failure; after a success it would go on without the addons."""
    await here.addon({"clusterStack": "docker-plain-1-32-v1"}, APPLIED)
    definition = crd(ClusterAddon)
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["hook"] = {"type": "string", "maxLength": 3}
    await here.addons.client.apply(CRDS, definition, field_manager="test")
    answer = await here.call(BEFORE)
    assert answer["status"] == "Failure"
    assert "spec.hook" in answer["message"]
    assert "retryAfterSeconds" not in answer
    await here.addons.client.apply(CRDS, crd(ClusterAddon), field_manager="test")
    assert (await here.call(BEFORE))["retryAfterSeconds"] == 10


async def test_a_cluster_of_another_class_does_not_wait_for_us(here: HookWorld) -> None:
    for path in (BEFORE, AFTER, INITIALIZED):
        answer = await here.call(path, "quick-start")
        assert answer["status"] == "Success"
        assert not answer.get("retryAfterSeconds")


@pytest.mark.parametrize(
    ("body", "said"), [({}, "`cluster`"), ([], "`cluster`"), ({"cluster": {"metadata": {}}}, "`name`")]
)
async def test_a_request_without_a_cluster_is_a_failure(here: HookWorld, body: Any, said: str) -> None:
    answer = await here.post(BEFORE, body)
    assert answer["status"] == "Failure"
    assert said in answer["message"]


async def test_a_cluster_that_names_its_class_by_reference_is_installed_and_upgraded(here: HookWorld) -> None:
    """The form of v1beta2: in its ClusterAddon, and in the Cluster that a hook is called with."""
    addons, clusters, following = here.addons, CLUSTERS["v1beta2"], "docker-plain-1-34-v1"
    stages = [{"name": "a", "action": "apply"}]
    addons.shelf.staged(CLASS, {"a": [config_map("a")]}, {"AfterControlPlaneInitialized": stages})
    upgrade = {"BeforeClusterUpgrade": stages}
    addons.shelf.staged(following, {"a": [config_map("a", of="next")]}, upgrade, kubernetes="v1.34.1")
    addons.clusters = clusters
    await addons.cluster(CLASS)
    await addons.kubeconfig()
    async with addons.controllers():
        await addons.installed(CLASS)
        topology = {"classRef": {"name": following}, "version": "v1.34.1"}
        cluster = await addons.client.patch(clusters, "shop", {"spec": {"topology": topology}}, HOME)
        assert "class" not in cluster["spec"]["topology"]
        assert (await here.post(BEFORE, {"cluster": cluster}))["retryAfterSeconds"] == 10
        await addons.installed(following)
        assert (await here.post(BEFORE, {"cluster": cluster}))["retryAfterSeconds"] == 0
    found = await addons.inside_object(CONFIG_MAPS, "a")
    assert found is not None
    assert found["data"] == {"of": "next"}
