"""A Shoot that gets another seed: Migrate, then Restore, and its objects are in the other cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest
from tests.simulation.garden import NAMESPACE, simulated, started_garden
from tests.simulation.shoots import small_shoot
from tests.waiting import until

from hortus.engine import Manager
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource
from hortus.simulation.garden.kinds import SEEDS, SHOOTS
from hortus.simulation.garden.seed.composition import add_seed
from hortus.simulation.garden.seed.kinds import CLUSTERS, EXTENSIONS, INFRASTRUCTURES, NAMESPACES
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer

SETTINGS = GardenSettings(time_factor=10.0, sync_period=1e6)
SECOND = "second"


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_garden(SETTINGS) as running, simulated(running, SETTINGS):
        yield running


@pytest.fixture
async def places(server: TestServer) -> AsyncIterator[dict[str, Client]]:
    """The garden, and the clusters of two seeds in which control planes are kept."""
    for name in ("first-cluster", "second-cluster"):
        server.create_cluster(name)
    async with AsyncExitStack() as stack:
        garden, first, second, root = [
            await stack.enter_async_context(Client.from_kubeconfig(server.kubeconfig_for(name)))
            for name in ("garden", "first-cluster", "second-cluster", "root")
        ]
        known = (await garden.list(SEEDS)).items
        like = next(one for one in known if one["metadata"]["name"].startswith("aws"))
        kept = {field: like[field] for field in ("apiVersion", "kind", "spec", "status")}
        await garden.create(SEEDS, {**kept, "metadata": {"name": SECOND}})
        managers = [Manager(garden)]
        for client, is_second in ((first, False), (second, True)):
            seeds = Manager(client)

            def is_here(seed: str, is_second: bool = is_second) -> bool:
                return (seed == SECOND) is is_second

            await add_seed(managers[0], seeds, seed=client, management=root, served=["acl"], hosts=is_here)
            managers.append(seeds)
        for manager in managers:
            await stack.enter_async_context(manager.running())
        yield {"garden": garden, "first": first, "second": second}


async def found(client: Client, resource: Resource, name: str, namespace: str = "") -> Object | None:
    try:
        return await client.get(resource, name, namespace)
    except NotFound:
        return None


async def test_a_shoot_moves_with_its_objects(places: dict[str, Client]) -> None:
    garden, shoot = places["garden"], small_shoot("demo", 3)
    name = shoot["metadata"]["name"]
    shoot["spec"]["extensions"] = [{"type": "acl", "providerConfig": {"rule": {}}}]
    shoot["metadata"]["namespace"] = NAMESPACE
    await garden.create(SHOOTS, shoot)

    async def operation(kind: str) -> Object | None:
        live = await garden.get(SHOOTS, name, NAMESPACE)
        last = (live.get("status") or {}).get("lastOperation") or {}
        return live if (last.get("type"), last.get("state")) == (kind, "Succeeded") else None

    live = await until(lambda: operation("Create"))
    place, before = live["status"]["technicalID"], live["spec"]["seedName"]
    assert before != SECOND
    await until(lambda: found(places["first"], EXTENSIONS, "acl", place))
    assert await found(places["second"], NAMESPACES, place) is None
    seen: list[tuple[str, str]] = []
    async with garden.watch(SHOOTS, NAMESPACE, initial_events=True) as events:
        await garden.patch(SHOOTS, name, {"spec": {"seedName": SECOND}}, NAMESPACE)
        async for event in events:
            status = event.object.get("status") or {}
            last = status.get("lastOperation") or {}
            if event.type == "BOOKMARK" or event.object["metadata"]["name"] != name or not last:
                continue
            seen.append((f"{last['type']} {last['state']}", status.get("seedName", "")))
            if seen[-1][0] == "Restore Succeeded":
                break
    steps = list(dict.fromkeys(one for one in seen if one[0].split()[0] in ("Migrate", "Restore")))
    assert steps == [
        ("Migrate Processing", before),
        ("Migrate Succeeded", SECOND),
        ("Restore Processing", SECOND),
        ("Restore Succeeded", SECOND),
    ]
    await until(lambda: found(places["second"], EXTENSIONS, "acl", place))
    assert await found(places["second"], INFRASTRUCTURES, name, place) is not None
    cluster = await until(lambda: found(places["second"], CLUSTERS, place))
    assert cluster["spec"]["seed"]["metadata"]["name"] == SECOND

    async def left() -> bool:
        rest = [await found(places["first"], resource, place) for resource in (NAMESPACES, CLUSTERS)]
        return all(one is None for one in rest) and await found(places["first"], EXTENSIONS, "acl", place) is None

    await until(left)
