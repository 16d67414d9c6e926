"""Nodes, hibernation, seeds and operations of a simulated garden at work, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from tests.simulation.garden import NAMESPACE, simulated, started_garden
from tests.simulation.test_garden import (
    CONFIRMATION,
    FORCE,
    OPERATION,
    Garden,
    answered,
    last,
    opened,
    succeeded,
)

from hortus.kube import Client, Resource
from hortus.kube.errors import Invalid, TransportError
from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import SEEDS, SHOOTS
from hortus.simulation.garden.nodes import POOL
from hortus.simulation.settings import Fault, GardenSettings
from hortus.testing.apiserver import TestServer

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
CODE = "ERR_CLEANUP_CLUSTER_RESOURCES"
SETTINGS = GardenSettings(
    schedule_delay=0,
    create_duration=0.2,
    reconcile_duration=0.2,
    delete_duration=0.2,
    progress_period=0.05,
    node_duration=0.02,
    care_period=0.05,
    retry_period=0.2,
    sync_period=1e6,
    faults=(
        Fault(shoots="hang-*", operation="Create", effect="stuck"),
        Fault(shoots="pause-*", operation="Create", effect="stuck", seconds=0.3, times=1),
        Fault(shoots="cut-*", operation="Create", effect="abort", times=1),
        Fault(shoots="late-*", operation="Create", effect="slow", seconds=0.5),
        Fault(shoots="dirty-*", operation="Delete", code=CODE),
    ),
)


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_garden(SETTINGS) as running, simulated(running, SETTINGS):
        yield running


@pytest.fixture
async def garden(server: TestServer) -> AsyncIterator[Garden]:
    async with Client.from_kubeconfig(server.kubeconfig_for("garden")) as client:
        yield Garden(client)


@pytest.fixture
async def everywhere(server: TestServer) -> AsyncIterator[Callable[[str], Client]]:
    """Administrators' clients of workload clusters."""
    clients: list[Client] = []

    def of(name: str) -> Client:
        clients.append(Client.from_kubeconfig(server.kubeconfig_for(f"shoot--demo--{name}")))
        return clients[-1]

    yield of
    for client in clients:
        await client.close()


def pool(name: str = "w", **changes: Any) -> Object:
    machine = {"type": "n2-standard-2", "image": {"name": "gardenlinux", "version": "1592.1.0"}}
    machine |= changes.pop("machine", {})
    zones = ["europe-west3-a", "europe-west3-b"]
    return {"name": name, "machine": machine, "minimum": 2, "maximum": 5, "zones": zones, **changes}


def workers(*pools: Object) -> Object:
    return {"type": "gcp", "workers": list(pools)}


async def pools_of(client: Client) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in (await client.list(NODES)).items:
        found.setdefault(node["metadata"]["labels"][POOL], []).append(node["metadata"]["name"])
    return found


async def changed(garden: Garden, name: str, spec: Object) -> list[Object]:
    """All states of the shoot until it has been reconciled after this change."""
    made = await garden.patch(name, {"spec": spec})
    generation = made["metadata"]["generation"]

    def done(obj: Object) -> bool:
        return bool(succeeded("Reconcile")(obj) and obj["status"]["observedGeneration"] == generation)

    return await garden.until(name, done, version=made["metadata"]["resourceVersion"])


async def test_pools_are_added_changed_and_removed(garden: Garden, everywhere: Callable[[str], Client]) -> None:
    await garden.ready("pools", provider=workers(pool(), pool("batch", minimum=1)))
    cluster = everywhere("pools")
    before = await pools_of(cluster)
    assert {name: len(found) for name, found in before.items()} == {"w": 2, "batch": 1}
    await changed(garden, "pools", {"provider": workers(pool(labels={"a": "b"}), pool("gpu", minimum=3, maximum=3))})
    after = await pools_of(cluster)
    assert after["w"] == before["w"]
    assert {name: len(found) for name, found in after.items()} == {"w": 2, "gpu": 3}
    labels = [node["metadata"]["labels"].get("a") for node in (await cluster.list(NODES)).items]
    assert labels.count("b") == 2
    addresses = [node["status"]["addresses"][0]["address"] for node in (await cluster.list(NODES)).items]
    assert len(set(addresses)) == 5


async def test_another_machine_replaces_nodes_one_by_one(garden: Garden, everywhere: Callable[[str], Client]) -> None:
    await garden.ready("roll", provider=workers(pool(minimum=3)))
    cluster = everywhere("roll")
    before = set((await pools_of(cluster))["w"])
    listed = await cluster.list(NODES)
    counts = [len(before)]
    seen = await changed(garden, "roll", {"provider": workers(pool(minimum=3, machine={"type": "n2-standard-4"}))})
    after = (await pools_of(cluster))["w"]
    assert (len(after), before & set(after)) == (3, set())
    async with asyncio.timeout(60), cluster.watch(NODES, resource_version=listed.resource_version) as events:
        async for event in events:
            if event.type in ("ADDED", "DELETED"):
                counts.append(counts[-1] + (1 if event.type == "ADDED" else -1))
            if len(counts) == 7:
                break
    assert (min(counts), max(counts)) == (3, 4)
    descriptions = {last(obj)["description"] for obj in seen}
    assert "Waiting until shoot worker nodes have been reconciled" in descriptions
    progress = [last(obj)["progress"] for obj in seen if last(obj)["state"] == "Processing"]
    assert progress[1:] == sorted(progress[1:])
    assert {node["status"]["capacity"]["cpu"] for node in (await cluster.list(NODES)).items} == {"4"}


async def test_a_kubelet_is_patched_in_place_and_a_lost_node_comes_back(
    garden: Garden, everywhere: Callable[[str], Client]
) -> None:
    await garden.ready("patch", kubernetes={"version": "1.33.5"}, provider=workers(pool()))
    cluster = everywhere("patch")
    before = (await pools_of(cluster))["w"]
    await cluster.delete(NODES, before[0])
    await garden.client.get(SHOOTS, "patch", NAMESPACE)
    await changed(garden, "patch", {"purpose": "production"})
    assert (await pools_of(cluster))["w"] == before
    await changed(garden, "patch", {"kubernetes": {"version": "1.34.1"}})
    nodes = (await cluster.list(NODES)).items
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes} == {"v1.34.1"}
    assert not set(before) & {node["metadata"]["name"] for node in nodes}


async def test_a_rotation_of_the_ca_replaces_nodes_and_says_how_far_it_is(
    garden: Garden, everywhere: Callable[[str], Client]
) -> None:
    await garden.ready("rotate", provider=workers(pool(minimum=1)))
    before = await pools_of(everywhere("rotate"))
    asked = await garden.annotate("rotate", **{OPERATION: "rotate-ca-start"})
    version = asked["metadata"]["resourceVersion"]
    seen = await garden.until("rotate", succeeded("Reconcile"), version=version)
    phases = [obj["status"].get("credentials", {}).get("rotation", {}) for obj in seen]
    assert next(found["certificateAuthorities"]["phase"] for found in phases if found) == "Preparing"
    assert phases[-1]["certificateAuthorities"]["phase"] == "Prepared"
    assert await pools_of(everywhere("rotate")) != before


async def test_a_hibernated_cluster_has_no_nodes_and_does_not_answer_until_it_wakes_up(
    garden: Garden, server: TestServer, everywhere: Callable[[str], Client]
) -> None:
    await garden.ready("sleepy", provider=workers(pool()))
    content = answered(await garden.kubeconfig("sleepy"))
    async with opened(content) as cluster:
        listed = await cluster.list(NODES)
        await changed(garden, "sleepy", {"hibernation": {"enabled": True}})
        with pytest.raises(TransportError):
            await cluster.list(NODES)
        assert len(listed.items) == 2
    assert await garden.kubeconfig("sleepy")
    assert (await garden.get("sleepy"))["status"]["hibernated"] is True
    await changed(garden, "sleepy", {"hibernation": {"enabled": False}})
    assert {name: len(found) for name, found in (await pools_of(everywhere("sleepy"))).items()} == {"w": 2}
    async with opened(content) as cluster:
        assert len((await cluster.list(NODES)).items) == 2


async def test_what_is_stuck_goes_on_when_the_shoot_changes(garden: Garden) -> None:
    await garden.create("hang-1")
    seen = await garden.until("hang-1", lambda obj: last(obj).get("progress", 0) >= 35)
    assert last(seen[-1])["progress"] <= 40
    deleting = await garden.annotate("hang-1", **{CONFIRMATION: "true"})
    await garden.client.delete(SHOOTS, "hang-1", NAMESPACE)
    seen = await garden.until("hang-1", lambda obj: not obj, version=deleting["metadata"]["resourceVersion"])
    assert {last(obj)["type"] for obj in seen if obj} == {"Create", "Delete"}


@pytest.mark.parametrize("name", ["pause-1", "late-1"])
async def test_what_takes_longer_ends_well(garden: Garden, name: str) -> None:
    made = await garden.create(name)
    seen = await garden.until(name, succeeded("Create"), version=made["metadata"]["resourceVersion"])
    assert {last(obj)["state"] for obj in seen if last(obj)} == {"Processing", "Succeeded"}


async def test_an_aborted_operation_starts_again(garden: Garden) -> None:
    made = await garden.create("cut-1")
    seen = await garden.until("cut-1", succeeded("Create"), version=made["metadata"]["resourceVersion"])
    states = [last(obj)["state"] for obj in seen if last(obj)]
    assert [state for state, before in zip(states, ["", *states], strict=False) if state != before] == [
        "Processing",
        "Aborted",
        "Processing",
        "Succeeded",
    ]


async def test_a_deletion_that_cannot_end_is_forced(garden: Garden) -> None:
    await garden.ready("dirty-1", metadata={"annotations": {CONFIRMATION: "true"}})
    with pytest.raises(Invalid, match="deletionTimestamp is nil"):
        await garden.annotate("dirty-1", **{FORCE: "true"})
    await garden.client.delete(SHOOTS, "dirty-1", NAMESPACE)
    seen = await garden.until("dirty-1", lambda obj: last(obj).get("state") == "Error")
    assert seen[-1]["status"]["lastErrors"][0]["codes"] == [CODE]
    forced = await garden.annotate("dirty-1", **{FORCE: "true"})
    seen = await garden.until("dirty-1", lambda obj: not obj, version=forced["metadata"]["resourceVersion"])
    assert "Starting Shoot cluster force deletion" in {last(obj)["description"] for obj in seen if obj}


async def test_a_silent_gardenlet_does_nothing_and_its_shoots_are_unknown(garden: Garden) -> None:
    region = {"region": "me-central2", "tolerations": [{"key": "ksa-assured-workload"}]}
    there = [pool(zones=["me-central2-a"])]
    await garden.ready("silent", **region, provider=workers(*there))
    seed = (await garden.get("silent"))["spec"]["seedName"]
    assert seed == "gcp-3"

    async def conditions(status: str) -> None:
        found = (await garden.client.get(SEEDS, seed))["status"]["conditions"]
        changed = [{**one, "status": status} if one["type"] == "GardenletReady" else one for one in found]
        await garden.client.patch(SEEDS, seed, {"status": {"conditions": changed}})

    await conditions("Unknown")
    await garden.until("silent", _conditions("Unknown"))
    patched = await garden.patch("silent", {"spec": {"purpose": "production"}})
    await garden.create("elsewhere", **region, provider=workers(*there))
    placed = await garden.until("elsewhere", succeeded("Create"))
    assert placed[-1]["spec"]["seedName"] != seed
    assert last(await garden.get("silent"))["type"] == "Create"
    await conditions("True")
    await garden.until("silent", succeeded("Reconcile"), version=patched["metadata"]["resourceVersion"])
    await garden.until("silent", _conditions("True"))


def _conditions(status: str) -> Callable[[Object], bool]:
    def says(obj: Object) -> bool:
        found = (obj.get("status") or {}).get("conditions") or ()
        return bool(found) and {one["status"] for one in found} == {status}

    return says
