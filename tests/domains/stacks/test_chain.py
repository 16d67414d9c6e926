"""The sample releases on their whole way: one process with all controllers of cluster stacks, and Cluster API."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.simulation.capi.world import NAMESPACE, CapiWorld, capi_world, is_ready

from hortus.cli.flags import FLAGS
from hortus.cli.program import program
from hortus.domains import free_port
from hortus.domains.stacks import types
from hortus.domains.stacks.capi import CLUSTERS
from hortus.engine.flags import FlagSet
from hortus.kube import Client, Resource, yaml
from hortus.kube.clock import SystemClock
from hortus.kube.objects import Object, ObjectKey
from hortus.schema import crd
from hortus.simulation.capi.definitions import CRDS
from hortus.simulation.capi.workload import CapiWorkloads
from hortus.simulation.workloads import DAEMON_SETS, DEPLOYMENTS, KubeletPace, RunningWorkloads
from hortus.testing.apiserver import TestServer, started_apiserver
from hortus.testing.waiting import wait_for, wait_gone

V1, V2 = "docker-ferrol-1-27-v1", "docker-ferrol-1-27-v2"
CLASSES = Resource("cluster.x-k8s.io", "v1beta1", "clusterclasses", "ClusterClass")
KINDS = (
    types.ClusterStack,
    types.ClusterStackRelease,
    types.ClusterAddon,
    types.StackPolicy,
    types.OpenStackClusterStackRelease,
    types.OpenStackClusterStackReleaseTemplate,
    types.OpenStackNodeImageRelease,
)
ADDONS = "kube-system"


@pytest.fixture
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


@pytest.fixture
async def capi(server: TestServer) -> AsyncIterator[CapiWorld]:
    async with capi_world(server) as made:
        for kind in KINDS:
            await made.client.apply(CRDS, crd(kind), field_manager="test")
        yield made


@asynccontextmanager
async def stacks(server: TestServer, folder: Path) -> AsyncIterator[None]:
    """A process of ours that serves cluster stacks of the releases in `folder`."""
    port = free_port()
    flags = (
        f"--kubeconfig={server.kubeconfig}",
        "--gardener-kubeconfig-path=",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--audit-log-mandatory=false",
        "--allow-local-clusters",
        "--stacks",
        "--local",
        f"--release-dir={folder}",
        f"--watch-namespace={NAMESPACE}",
        f"--hook-bind-address=127.0.0.1:{port}",
        f"--hook-url=https://127.0.0.1:{port}",
        f"--hook-namespace={NAMESPACE}",
        "--webhook-bind-address=0",
    )
    async with program(FlagSet(FLAGS).parse(flags), grace=0.0) as manager, manager.running():
        yield


@asynccontextmanager
async def kubelets(inside: Client) -> AsyncIterator[None]:
    """The nodes of a workload cluster run what is placed on them."""
    workloads = RunningWorkloads(inside, KubeletPace(start=0.0, restart_period=1.0), clock=SystemClock())
    running = asyncio.create_task(workloads.run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def sample(file: Path) -> Object:
    """A sample object, moved to the namespace of the test."""
    found: Object = yaml.load(file.read_text().replace("${CLUSTER_NAME}", "shop"))
    found["metadata"]["namespace"] = NAMESPACE
    return found


async def offers(client: Client, *versions: str) -> None:
    """Makes the ClusterStack ask for those versions."""
    spec = {"versions": list(versions)}
    await client.patch(types.CLUSTER_STACKS, "clusterstack", {"spec": spec}, NAMESPACE)


async def uses(client: Client, tag: str) -> Object:
    """The ClusterAddon once it has the addons of a release installed."""

    def says(addon: Object) -> bool:
        return addon["spec"].get("clusterStack") == tag and bool(addon.get("status", {}).get("ready"))

    return await wait_for(client, types.CLUSTER_ADDONS, "cluster-addon-shop", NAMESPACE, until=says)


def released(obj: Object) -> bool:
    return bool(obj.get("status", {}).get("ready"))


def available(version: str = "") -> Callable[[Object], bool]:
    """Holds of a workload whose pods are all available as its present spec has them."""

    def says(obj: Object) -> bool:
        status, labels = obj.get("status") or {}, obj["metadata"]["labels"]
        updated = status.get("updatedReplicas", status.get("updatedNumberScheduled", 0))
        running = status.get("availableReplicas", status.get("numberAvailable", 0))
        wanted = obj["spec"].get("replicas", status.get("desiredNumberScheduled"))
        observed = status.get("observedGeneration") == obj["metadata"]["generation"]
        return observed and updated == running == wanted > 0 and labels.get("clusterAddonVersion", "") == version

    return says


async def test_the_sample_releases_run_in_a_workload_cluster_and_through_an_upgrade(
    server: TestServer, capi: CapiWorld, upstream: Path, tmp_path: Path
) -> None:
    shutil.copytree(upstream / "cso/releases", tmp_path / "cluster-stacks")
    client = capi.client
    await client.create(types.CLUSTER_STACKS, sample(upstream / "cso/samples/cso-clusterstack.yaml"))
    await offers(client, "v1")
    async with (
        capi.controllers(),
        stacks(server, tmp_path),
        CapiWorkloads(capi.management).client(ObjectKey(NAMESPACE, "shop")) as inside,
    ):
        await wait_for(client, types.CLUSTER_STACK_RELEASES, V1, NAMESPACE, until=released)
        await client.create(CLUSTERS["v1beta1"], sample(upstream / "cso/releases" / V1 / "topology-docker.yaml"))
        await uses(client, V1)
        await capi.until("shop", is_ready)
        async with kubelets(inside):
            agent = await wait_for(inside, DAEMON_SETS, "kindnet", ADDONS, until=available())
            assert agent["status"]["numberAvailable"] == 2
            await wait_for(inside, DEPLOYMENTS, "metrics-server", ADDONS, until=available("v1"))
            await wait_for(inside, DEPLOYMENTS, "web", ADDONS, until=available())
            await offers(client, "v1", "v2")
            await wait_for(client, types.CLUSTER_STACK_RELEASES, V2, NAMESPACE, until=released)
            await capi.move("shop", "v1.27.3", **{"class": V2})
            await uses(client, V2)
            await wait_for(inside, DEPLOYMENTS, "metrics-server", ADDONS, until=available("v2"))
            await wait_gone(inside, DEPLOYMENTS, "web", ADDONS)
            await wait_for(inside, DAEMON_SETS, "kindnet", ADDONS, until=available())
        await offers(client, "v2")
        await wait_gone(client, types.CLUSTER_STACK_RELEASES, V1, NAMESPACE)
        await wait_gone(client, CLASSES, V1, NAMESPACE)
        await client.get(CLASSES, V2, NAMESPACE)
