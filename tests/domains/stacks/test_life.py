"""Clusters of a simulated Cluster API from their creation through upgrades, with hooks over HTTPS and real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.domains.stacks.addons.releases import DirectRenderer, ReleaseShelf, config_map
from tests.simulation.capi.world import CapiWorld, capi_world, condition, is_ready, pending

from hortus.domains import free_port
from hortus.domains.stacks.addons.composition import add_addons
from hortus.domains.stacks.capi import CLUSTERS
from hortus.domains.stacks.hooks.composition import add_hooks
from hortus.domains.stacks.hooks.registration import EXTENSION_CONFIGS
from hortus.domains.stacks.releases.library import LocalLibrary
from hortus.domains.stacks.releases.stores import ReleaseFolder
from hortus.domains.stacks.types import CLUSTER_ADDONS, ClusterAddon
from hortus.engine import EventRecorder, Manager, without_managed_fields
from hortus.engine.deputies import Deputies
from hortus.engine.health import Address
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.remote import RemotePool, RemoteSettings, SecretCredentials
from hortus.engine.rollouts import RolloutGate
from hortus.engine.serving import ServingEndpoint
from hortus.kube import Client, Resource
from hortus.kube.objects import Object, ObjectKey
from hortus.schema import crd
from hortus.simulation.capi.definitions import CRDS
from hortus.simulation.capi.workload import CapiWorkloads
from hortus.testing.apiserver import TestServer, started_apiserver
from hortus.testing.waiting import wait_for, wait_gone

HOME = "stacks"
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
CLASSES = Resource("cluster.x-k8s.io", "v1beta1", "clusterclasses", "ClusterClass")
ONE, TWO, THREE = "docker-plain-1-33-v1", "docker-plain-1-34-v1", "docker-plain-1-34-v2"


@pytest.fixture
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


class Life:
    """A management cluster with Cluster API and our controllers."""

    def __init__(self, capi: CapiWorld, shelf: ReleaseShelf, folder: Path) -> None:
        self.capi = capi
        self.client = capi.client
        self.shelf = shelf
        self.folder = folder
        self.port = free_port()

    @asynccontextmanager
    async def controllers(self) -> AsyncIterator[None]:
        """One process of our controllers, killed at the end."""
        async with Client(self.client.access) as client:
            manager = Manager(client, grace=0.0)
            releases = LocalLibrary(ReleaseFolder(self.shelf.folder), clock=manager.clock)
            pool = RemotePool(
                SecretCredentials(client, manager.cache(SECRETS, labels="none=of-these", transform=sealed)),
                settings=RemoteSettings(deny=()),
            )
            manager.on_stop(pool.close)
            events = EventRecorder(client, component="clusterstack-controller", clock=manager.clock)
            manager.add_server(events)
            add_addons(
                manager,
                client=client,
                namespace="",
                clusters=manager.cache(CLUSTERS["v1beta1"], transform=without_managed_fields),
                pool=pool,
                releases=releases,
                renderer=DirectRenderer(),
                events=events,
                gate=RolloutGate(None),
                deputies=Deputies(client, "*", clock=manager.clock),
            )
            add_hooks(
                manager,
                client=client,
                releases=releases,
                address=Address("127.0.0.1", self.port),
                folder=self.folder / "none",
                endpoint=ServingEndpoint(url=f"https://127.0.0.1:{self.port}"),
                config="hooks",
                namespace=HOME,
            )
            async with manager.running():
                await wait_for(
                    client, EXTENSION_CONFIGS, "hooks", until=lambda obj: "handlers" in obj.get("status", {})
                )
                yield

    async def until(self, says: Callable[[Object], Any], name: str = "shop") -> Object:
        return await wait_for(
            self.client, CLUSTER_ADDONS, f"cluster-addon-{name}", HOME, until=lambda obj: bool(says(obj)), patience=60
        )

    async def installed(self, class_name: str, name: str = "shop") -> Object:
        def says(obj: Object) -> bool:
            spec = obj["spec"]
            return (
                spec.get("clusterStack") == class_name and not spec.get("hook") and obj.get("status", {}).get("ready")
            )

        return await self.until(says, name)

    async def began(self) -> None:
        """The Cluster `shop` with release ONE, at rest."""
        await self.capi.cluster("shop", "v1.33.1", class_name=ONE)
        await self.installed(ONE)
        await self.capi.until("shop", lambda obj: is_ready(obj) and not pending(obj))

    def inside(self, name: str = "shop") -> Client:
        return CapiWorkloads(self.capi.management).client(ObjectKey(HOME, name))

    def staged(self, tag: str, kubernetes: str, *names: str, **hooks: Any) -> None:
        """A release whose charts hold a ConfigMap each, applied at both hooks."""
        stages = [{"name": name, "action": "apply"} for name in names]
        config = {"AfterControlPlaneInitialized": stages, "BeforeClusterUpgrade": stages, **hooks}
        charts = {name: [config_map(name, release=tag)] for name in names}
        self.shelf.staged(tag, charts, config, kubernetes=kubernetes)


@pytest.fixture
async def here(server: TestServer, tmp_path: Path) -> AsyncIterator[Life]:
    async with capi_world(server) as capi:
        await capi.client.apply(CRDS, crd(ClusterAddon), field_manager="test")
        yield Life(capi, ReleaseShelf(tmp_path / "releases"), tmp_path)


async def test_the_releases_of_the_go_system_live_through_an_upgrade(here: Life, upstream: Path) -> None:
    old, new = "docker-ferrol-1-27-v1", "docker-ferrol-1-27-v2"
    here.shelf.upstream(upstream, old, new)
    for name in (old, new):
        await here.capi.cluster_class(name)
    async with here.capi.controllers(), here.controllers():
        await here.capi.cluster("shop", "v1.27.3", class_name=old)
        await here.installed(old)
        async with here.inside() as inside:
            found = await inside.get(DEPLOYMENTS, "metrics-server", "kube-system")
            assert found["metadata"]["labels"]["clusterAddonVersion"] == "v1"
            await here.capi.move("shop", "v1.27.3", **{"class": new})
            await here.installed(new)
            found = await inside.get(DEPLOYMENTS, "metrics-server", "kube-system")
            assert found["metadata"]["labels"]["clusterAddonVersion"] == "v2"
            await wait_gone(inside, DEPLOYMENTS, "web", "kube-system")


async def test_stages_run_before_cluster_api_upgrades_the_control_plane(here: Life) -> None:
    here.staged(ONE, "v1.33.1", "cni", "csi")
    here.staged(TWO, "v1.34.1", "cni", "ccm")
    for name in (ONE, TWO):
        await here.capi.cluster_class(name)
    async with here.capi.controllers(), here.controllers():
        await here.capi.cluster("shop", "v1.33.1", class_name=ONE)
        addon = await here.installed(ONE)
        assert not addon["status"].get("stages")
        assert {one["name"] for one in addon["status"]["resources"]} == {"cni", "csi"}
        await here.capi.until("shop", lambda obj: is_ready(obj) and not pending(obj))
        await here.capi.move("shop", "v1.34.1", **{"class": TWO})
        addon = await here.installed(TWO)
        async with here.inside() as inside:
            assert (await inside.get(CONFIG_MAPS, "cni", "kube-system"))["data"]["release"] == TWO
            await wait_gone(inside, CONFIG_MAPS, "csi", "kube-system")
        await here.capi.until(
            "shop",
            lambda obj: (
                is_ready(obj) and not pending(obj) and condition(obj, "TopologyReconciled").get("status") == "True"
            ),
        )
    assert addon["metadata"]["annotations"]["ClusterAddonStage"] == "upgraded"


async def test_an_upgrade_waits_for_addons_that_cannot_be_installed(here: Life) -> None:
    """Cluster API stays at the old version, and a release that is mended by another class goes on (issue 212)."""
    here.staged(ONE, "v1.33.1", "cni")
    stages = [{"name": "cni", "action": "apply"}, {"name": "absent", "action": "apply"}]
    here.staged(TWO, "v1.34.1", "cni", BeforeClusterUpgrade=stages)
    here.staged(THREE, "v1.34.1", "cni")
    for name in (ONE, TWO, THREE):
        await here.capi.cluster_class(name)
    async with here.capi.controllers(), here.controllers():
        await here.began()
        await here.capi.move("shop", "v1.34.1", **{"class": TWO})
        addon = await here.until(lambda obj: condition(obj, "HelmChartFound").get("status") == "False")
        assert "absent" in condition(addon, "HelmChartFound")["message"]
        await here.capi.until("shop", lambda obj: "blocking" in condition(obj, "TopologyReconciled").get("message", ""))
        await here.capi.move("shop", "v1.34.1", **{"class": THREE})
        await here.installed(THREE)
        cluster = await here.capi.until("shop", is_ready)
    assert cluster["spec"]["topology"]["version"] == "v1.34.1"


async def test_stages_after_an_upgrade_run_when_it_is_over(here: Life) -> None:
    here.staged(ONE, "v1.33.1", "cni")
    charts = {"cni": [config_map("cni")], "late": [config_map("late")]}
    cni = [{"name": "cni", "action": "apply"}]
    config = {
        "AfterControlPlaneInitialized": cni,
        "BeforeClusterUpgrade": cni,
        "AfterClusterUpgrade": [{"name": "late", "action": "apply"}],
    }
    here.shelf.staged(TWO, charts, config, kubernetes="v1.34.1")
    for name in (ONE, TWO):
        await here.capi.cluster_class(name)
    async with here.capi.controllers(), here.controllers():
        await here.began()
        await here.capi.move("shop", "v1.34.1", **{"class": TWO})
        async with here.inside() as inside:
            await wait_for(inside, CONFIG_MAPS, "late", "kube-system", patience=60)
        await here.installed(TWO)
        addon = await here.until(lambda obj: len(obj["status"]["resources"]) == 2)
    assert {one["name"] for one in addon["status"]["resources"]} == {"cni", "late"}


async def test_an_upgrade_goes_on_after_a_restart_of_everything(here: Life) -> None:
    here.staged(ONE, "v1.33.1", "cni")
    here.staged(TWO, "v1.34.1", "cni")
    for name in (ONE, TWO):
        await here.capi.cluster_class(name)
    async with here.capi.controllers(), here.controllers():
        await here.began()
    async with here.capi.controllers():
        await here.capi.move("shop", "v1.34.1", **{"class": TWO})
        await here.capi.until("shop", lambda obj: "LifecycleHookFailed" in str(obj.get("status")))
    async with here.capi.controllers(), here.controllers():
        await here.installed(TWO)
        cluster = await here.capi.until("shop", is_ready)
    assert cluster["spec"]["topology"]["class"] == TWO


async def test_a_deleted_cluster_takes_its_addon_with_it(here: Life) -> None:
    here.staged(ONE, "v1.33.1", "cni")
    await here.capi.cluster_class(ONE)
    async with here.capi.controllers(), here.controllers():
        await here.capi.cluster("shop", "v1.33.1", class_name=ONE)
        await here.installed(ONE)
        await here.client.delete(CLUSTERS["v1beta1"], "shop", HOME)
        await wait_gone(here.client, CLUSTERS["v1beta1"], "shop", HOME)
        await wait_gone(here.client, CLUSTER_ADDONS, "cluster-addon-shop", HOME)
