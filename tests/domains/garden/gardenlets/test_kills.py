"""A process that is killed at any of its writes is replaced without a trace: every write is enumerated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.domains.garden.gardenlets.world import DEPLOYMENTS, NEW, SEEDS, GardenWorld, garden_world
from tests.domains.killing import Killer, killed_at

from hortus.domains.garden.gardenlets.bootstrap import SECRETS
from hortus.domains.garden.gardenlets.composition import OPERATOR, SELF_UPGRADE
from hortus.domains.garden.types import GARDENLETS
from hortus.testing.apiserver import TestServer

MOST = 80
SAMPLE = (0, 2, 5, 9)
"""Writes at which the short test kills."""


class Requests:
    """The requests of a process."""

    def __init__(self) -> None:
        self.on_answer: Callable[..., None] = lambda method: None

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.on_answer(method)


@pytest.fixture
async def world(server: TestServer, tmp_path: Path) -> AsyncIterator[GardenWorld]:
    async with garden_world(server, tmp_path, "one") as made:
        yield made


async def is_killed(world: GardenWorld, controller: str, writes: int, done: asyncio.Task[object]) -> bool:
    requests = Requests()
    killer = Killer(controller, requests, reads=False, remote=True)
    try:
        return await killed_at(killer, writes, world.operating(observer=requests), done)
    finally:
        killer.rest()


async def forget(world: GardenWorld) -> None:
    """Remove all of the gardenlet, so that the next attempt begins from scratch."""
    await world.management.delete(GARDENLETS, "one", "garden")
    await world.garden.delete(SEEDS, "one")
    client = world.seeds["one"]
    await client.delete(DEPLOYMENTS, "gardenlet", "garden")
    for name in ("gardenlet-kubeconfig",):
        await client.delete(SECRETS, name, "garden")


async def one_round(world: GardenWorld, controller: str, writes: int) -> bool:
    """Deploy, register and upgrade with a kill; returns whether there was one."""
    await world.add_gardenlet("one")
    async with world.gardenlets():
        done: asyncio.Task[object] = asyncio.ensure_future(world.healthy("one"))
        killed = await is_killed(world, controller, writes, done)
        async with world.operating():
            await done
            place = {"deployment": {"helm": {"ociRepository": {"ref": world.chart(NEW)}}}}
            await world.management.patch(GARDENLETS, "one", {"spec": place}, "garden")
            found = await world.healthy("one")
    assert await world.image("one") == f"v{NEW}"
    assert "kubeconfigSecretRef" not in found["spec"]
    assert await world.get(world.management, SECRETS, "one-kubeconfig", "garden") is None
    assert await world.get(world.seeds["one"], SECRETS, "gardenlet-kubeconfig-bootstrap", "garden") is None
    return killed


@pytest.mark.parametrize("controller", [OPERATOR, SELF_UPGRADE])
async def test_a_sample_of_kills_leaves_no_trace(world: GardenWorld, controller: str) -> None:
    killed = 0
    for writes in SAMPLE:
        killed += await one_round(world, controller, writes)
        await forget(world)
    assert killed


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("controller", [OPERATOR, SELF_UPGRADE])
async def test_a_kill_at_every_write_leaves_no_trace(world: GardenWorld, controller: str) -> None:
    for writes in range(MOST):
        killed = await one_round(world, controller, writes)
        await forget(world)
        if not killed:
            assert writes > 3
            return
    pytest.fail(f"{controller} was killed at each of {MOST} writes")
