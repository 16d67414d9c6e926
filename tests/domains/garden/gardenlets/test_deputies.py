"""A Gardenlet of a namespace that is not trusted has a Seed as far as the deputy of its namespace may."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domains.garden.gardenlets.world import GardenWorld, garden_world
from tests.domains.granting import grant_verbs
from tests.waiting import until

from hortus.domains.garden.gardenlets.bootstrap import SECRETS
from hortus.domains.garden.gardenlets.checks import DEPLOYMENTS
from hortus.domains.garden.kinds.gardenlet import GARDENLETS
from hortus.domains.garden.kinds.seed import SEEDS
from hortus.engine.deputies import deputy_of
from hortus.testing.apiserver import TestServer


@pytest.fixture
async def world(server: TestServer, tmp_path: Path) -> AsyncIterator[GardenWorld]:
    async with garden_world(server, tmp_path, "one") as made:
        yield made


async def allow(world: GardenWorld, group: str, resource: str, *verbs: str) -> None:
    await grant_verbs(world.management, "garden", group, resource, *verbs)


async def test_no_gardenlet_is_deployed_that_the_deputy_may_not_have(world: GardenWorld) -> None:
    world.trusted = "kcp-system"
    secret = await world.add_kubeconfig("one")
    await world.add_gardenlet("one", kubeconfig=secret)
    async with world.operating():
        await world.condition("one", "SeedRegistered", "False", text="may not create seeds of core.gardener.cloud")
    await allow(world, "core.gardener.cloud", "seeds", "create")
    async with world.operating():
        text = f"may not get secrets/{secret} in namespace garden"
        await world.condition("one", "SeedRegistered", "False", text=text)
    assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is None
    await allow(world, "", "secrets", "get", "delete")
    async with world.gardenlets(), world.operating():
        await world.healthy("one")
    assert await world.get(world.management, SECRETS, secret, "garden") is None


async def test_a_gardenlet_reaches_the_own_cluster_as_the_deputy(world: GardenWorld) -> None:
    world.trusted = ""
    await world.add_gardenlet("one", kubeconfig="")
    await allow(world, "core.gardener.cloud", "seeds", "create")
    async with world.operating(upgraded=()):
        found = await world.condition("one", "SeedRegistered", "False", text="OwnClusterForbidden")
    assert f'User "{deputy_of("garden")}" cannot get resource "deployments"' in str(found["status"])


async def test_a_deletion_leaves_a_seed_that_the_deputy_may_not_delete(world: GardenWorld) -> None:
    await world.add_gardenlet("one")
    async with world.gardenlets(), world.operating(decommission=True):
        await world.healthy("one")
    world.trusted = ""
    await world.management.delete(GARDENLETS, "one", "garden")
    async with world.operating(decommission=True):

        async def is_gone() -> bool:
            return await world.get(world.management, GARDENLETS, "one", "garden") is None

        await until(is_gone)
    seed = await world.garden.get(SEEDS, "one")
    assert "deletionTimestamp" not in seed["metadata"]
    assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is not None
