"""Nodes of simulated workload clusters follow the topology: their number, their roles, their version."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulation.capi.world import NAMESPACE, CapiWorld, capi_world, is_ready
from tests.waiting import until

from hortus.kube import Client
from hortus.kube.clock import SystemClock
from hortus.kube.objects import Object, ObjectKey
from hortus.simulation.capi.nodes import CONTROL_PLANE, node_object, wanted_nodes
from hortus.simulation.capi.workload import CapiWorkloads
from hortus.simulation.workloads import DAEMON_SETS, NODES, KubeletPace, RunningWorkloads
from hortus.testing.apiserver import TestServer, started_apiserver
from hortus.testing.waiting import wait_for

SMALLEST = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
KEY = ObjectKey(NAMESPACE, "shop")
GROUPS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["", "zone-a"])), max_size=3)


@pytest.fixture
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[CapiWorld]:
    async with capi_world(server) as made:
        yield made


def cluster(planes: int | None = None, *groups: Object) -> Object:
    plane = {} if planes is None else {"controlPlane": {"replicas": planes}}
    topology = {**plane, "workers": {"machineDeployments": list(groups)}}
    return {"metadata": {"name": "shop", "namespace": NAMESPACE, "uid": "1"}, "spec": {"topology": topology}}


@given(st.integers(0, 3), GROUPS, st.sampled_from(["v1.33.1", "v1.34.0"]))
def test_a_cluster_has_the_nodes_of_its_groups_and_all_have_other_names_at_another_version(
    planes: int, groups: list[tuple[int, str]], version: str
) -> None:
    workers = [{"name": f"md-{n}", "replicas": count, "failureDomain": zone} for n, (count, zone) in enumerate(groups)]
    found = wanted_nodes(cluster(planes, *workers), version)
    assert sum(node.is_control_plane for node in found.values()) == planes
    assert len(found) == planes + sum(count for count, _ in groups)
    zoned = sum("topology.kubernetes.io/zone" in node.labels for node in found.values())
    assert zoned == sum(count for count, zone in groups if zone)
    assert found.keys().isdisjoint(wanted_nodes(cluster(planes, *workers), "v1.35.0"))


@pytest.mark.parametrize(
    ("group", "count"),
    [
        ({"name": "md"}, 1),
        ({"name": "md", "replicas": 0}, 0),
        ({"name": "md", "metadata": {"annotations": {SMALLEST: "3"}}}, 3),
    ],
)
def test_a_group_without_a_number_has_one_node_or_the_least_of_the_autoscaler(group: Object, count: int) -> None:
    assert len(wanted_nodes(cluster(0, group), "v1.33.1")) == count


def test_labels_are_handed_on_by_their_prefix_and_control_planes_are_tainted() -> None:
    labels = {"node.cluster.x-k8s.io/tier": "fast", "team": "shop"}
    found = wanted_nodes(cluster(None, {"name": "md", "metadata": {"labels": labels}}), "v1.33.1").values()
    plane, worker = (node_object(node, KEY, "v1.33.1") for node in found)
    assert plane["spec"]["taints"] == [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]
    assert plane["metadata"]["labels"][CONTROL_PLANE] == ""
    assert "taints" not in worker["spec"]
    assert worker["metadata"]["labels"]["node.cluster.x-k8s.io/tier"] == "fast"
    assert "team" not in worker["metadata"]["labels"]
    assert worker["status"]["nodeInfo"]["kubeletVersion"] == "v1.33.1"


async def versions(inside: Client) -> list[str]:
    """The versions of all kubelets."""
    return sorted(node["status"]["nodeInfo"]["kubeletVersion"] for node in (await inside.list(NODES)).items)


async def test_nodes_come_with_a_cluster_grow_with_it_and_are_replaced_by_an_upgrade(here: CapiWorld) -> None:
    await here.cluster_class()
    group = {"class": "default", "name": "md-0", "replicas": 2}
    topology = {"class": "quick", "version": "v1.33.1", "workers": {"machineDeployments": [group]}}
    await here.cluster("shop", topology=topology)

    async def has(*wanted: str) -> bool:
        return await versions(inside) == sorted(wanted)

    async with here.controllers(), CapiWorkloads(here.management).client(KEY) as inside:
        await here.until("shop", is_ready)
        assert await versions(inside) == ["v1.33.1"] * 3
        await inside.create(NODES, {"metadata": {"name": "by-hand"}})
        await here.move("shop", "v1.33.1", workers={"machineDeployments": [{**group, "replicas": 3}]})
        await until(lambda: has(*["v1.33.1"] * 4, ""))
        await here.move("shop", "v1.34.1")
        await until(lambda: has(*["v1.34.1"] * 4, ""))


async def test_an_agent_runs_on_the_workers_and_where_it_tolerates_it_on_the_control_plane(here: CapiWorld) -> None:
    await here.cluster_class()
    workers = {"machineDeployments": [{"class": "default", "name": "md-0", "replicas": 2}]}
    await here.cluster("shop", topology={"class": "quick", "version": "v1.33.1", "workers": workers})
    async with here.controllers(), CapiWorkloads(here.management).client(KEY) as inside:
        await here.until("shop", is_ready)
        kubelet = KubeletPace(start=0.0, restart_period=1.0)
        running = asyncio.create_task(RunningWorkloads(inside, kubelet, clock=SystemClock()).run())
        for name, tolerations in (("plain", []), ("everywhere", [{"operator": "Exists"}])):
            await inside.create(DAEMON_SETS, daemon_set(name, tolerations))
        for name, nodes in (("plain", 2), ("everywhere", 3)):
            await wait_for(inside, DAEMON_SETS, name, "default", until=partial(has_available, nodes))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def has_available(nodes: int, daemon_set: Object) -> bool:
    return bool((daemon_set.get("status") or {}).get("numberAvailable") == nodes)


def daemon_set(name: str, tolerations: list[Object]) -> Object:
    labels = {"app": name}
    pod = {"containers": [{"name": "agent", "image": "agent"}], "tolerations": tolerations}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }
