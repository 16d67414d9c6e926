"""A Gardenlet that is deleted: what goes with it, what holds it up, and what is recorded where it cannot be removed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domains.garden.gardenlets.world import DEPLOYMENTS, SEEDS, GardenWorld, garden_world
from tests.waiting import until

from hortus.domains.garden.gardenlets import bootstrap
from hortus.domains.garden.gardenlets.decommission import FINALIZER
from hortus.domains.garden.kinds.seed import SHOOTS
from hortus.domains.garden.types import GARDENLETS
from hortus.engine.leftovers.types import LEFTOVERS
from hortus.kube.objects import Object, Resource
from hortus.testing.apiserver import TestServer

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


@pytest.fixture
async def world(server: TestServer, tmp_path: Path) -> AsyncIterator[GardenWorld]:
    async with garden_world(server, tmp_path, "one") as made:
        yield made


async def gone(world: GardenWorld) -> None:
    async def look() -> bool:
        return await world.get(world.management, GARDENLETS, "one", "garden") is None

    await until(look)


async def leftovers(world: GardenWorld) -> list[Object]:
    return (await world.management.list(LEFTOVERS, "fleet")).items


async def test_a_deletion_leaves_everything_where_it_is_unless_asked(world: GardenWorld) -> None:
    await world.add_gardenlet("one")
    async with world.gardenlets(), world.operating():
        found = await world.healthy("one")
        assert not found["metadata"].get("finalizers")
        await world.management.delete(GARDENLETS, "one", "garden")
        await gone(world)
    assert await world.get(world.garden, SEEDS, "one") is not None
    assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is not None


async def test_a_seed_goes_out_of_service_once_its_shoots_have_moved(world: GardenWorld) -> None:
    await world.add_gardenlet("one")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-demo"}}
    await world.garden.create(NAMESPACES, namespace)
    shoot = {"apiVersion": SHOOTS.api_version, "kind": "Shoot", "metadata": {"name": "a", "namespace": "garden-demo"}}
    await world.garden.create(SHOOTS, {**shoot, "spec": {"seedName": "one"}})
    async with world.gardenlets(), world.operating(decommission=True):
        await world.healthy("one")
        await world.management.delete(GARDENLETS, "one", "garden")
        await world.condition("one", "SeedRegistered", "False", reason="SeedInUse", text="garden-demo/a")
        assert await world.get(world.garden, SEEDS, "one") is not None
        await world.garden.patch(SHOOTS, "a", {"spec": {"seedName": "two"}}, "garden-demo")
        await gone(world)
    assert await world.get(world.garden, SEEDS, "one") is None
    for resource, name in ((DEPLOYMENTS, "gardenlet"), (bootstrap.SECRETS, "gardenlet-kubeconfig")):
        assert await world.get(world.seeds["one"], resource, name, "garden") is None
    token = bootstrap.token_name(bootstrap.token_id("garden", "one"))
    assert await world.get(world.garden, bootstrap.SECRETS, token, "kube-system") is None
    assert await leftovers(world) == []


async def test_the_bootstrap_token_of_something_else_is_neither_renewed_nor_deleted(world: GardenWorld) -> None:
    token = bootstrap.next_token("garden", "one", None, now=0.0)
    before = await world.garden.create(bootstrap.SECRETS, bootstrap.token_secret(token, "garden", "of-another"))
    await world.add_gardenlet("one")
    async with world.gardenlets(), world.operating(decommission=True):
        await world.condition("one", "SeedRegistered", "False", text="is the bootstrap token of something else")
        await world.management.delete(GARDENLETS, "one", "garden")
        await gone(world)
    assert await world.garden.get(bootstrap.SECRETS, bootstrap.token_name(token.identifier), "kube-system") == before


async def test_what_cannot_be_removed_is_recorded(world: GardenWorld) -> None:
    await world.add_gardenlet("one")
    async with world.gardenlets(), world.operating(decommission=True):
        await world.healthy("one")
    await world.garden.patch(SEEDS, "one", {"metadata": {"finalizers": ["example.org/held"]}})
    del world.seeds["one"]  # there is no kubeconfig of it any more
    async with world.operating(decommission=True, deadline=0.0):
        await world.management.delete(GARDENLETS, "one", "garden")
        await gone(world)
    found = {one["spec"]["reason"]: one["spec"] for one in await leftovers(world)}
    assert [item["what"] for item in found["NotPruned"]["items"]] == ["Seed one"]
    assert {item["what"] for item in found["ClusterGone"]["items"]} == {
        "Deployment garden/gardenlet",
        "ConfigMap garden/gardenlet-set",
        "Secret garden/gardenlet-kubeconfig",
    }


async def test_nothing_is_removed_from_the_cluster_of_another_seed(server: TestServer, tmp_path: Path) -> None:
    async with garden_world(server, tmp_path, "one", "two") as world:
        for name in world.seeds:
            await world.add_gardenlet(name)
        async with world.gardenlets(), world.operating(decommission=True):
            for name in world.seeds:
                await world.healthy(name)
        world.seeds["one"] = world.seeds["two"]  # the file has the kubeconfig of another seed
        async with world.operating(decommission=True, upgraded=()):
            await world.management.delete(GARDENLETS, "one", "garden")
            await world.condition("one", "SeedRegistered", "False", text="OtherSeed: ")
        async with world.operating(decommission=True, upgraded=(), deadline=0.0):
            await gone(world)
        for resource, name in ((DEPLOYMENTS, "gardenlet"), (bootstrap.SECRETS, "gardenlet-kubeconfig")):
            assert await world.get(world.seeds["two"], resource, name, "garden") is not None
        (found,) = await leftovers(world)
        assert found["spec"]["reason"] == "ClusterGone"


async def test_a_gardenlet_that_was_held_is_released_when_the_flag_is_off(world: GardenWorld) -> None:
    await world.add_gardenlet("one", kubeconfig="", finalizers=[FINALIZER])
    await world.management.delete(GARDENLETS, "one", "garden")
    async with world.operating(upgraded=()):
        await gone(world)
    assert await leftovers(world) == []
