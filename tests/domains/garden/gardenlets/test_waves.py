"""Gardenlets upgraded in waves: a RolloutPolicy governs the chart, and a bad version stops at the first wave."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from tests.domains.clocks import MovedClock
from tests.domains.garden.gardenlets.world import BROKEN, FLEET, NEW, OLD, GardenWorld, garden_world
from tests.waiting import until

from hortus.domains.garden.gardenlets.composition import OPERATOR
from hortus.domains.garden.gardenlets.deploying import GardenletDeployer
from hortus.domains.garden.gardenlets.operator import AUTO_UPDATE
from hortus.domains.garden.types import GARDENLETS
from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.engine import Actor, Manager, StepError
from hortus.engine.rollouts.types import ROLLOUT_POLICIES, ROLLOUTS
from hortus.kube.errors import ServiceUnavailable
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer

SETTLE = 10.0
"""Longer than the silence after which a simulated Seed turns Unknown."""


@asynccontextmanager
async def fleet(server: TestServer, folder: Path, seeds: int, *, canaries: int) -> AsyncIterator[GardenWorld]:
    """Seeds with running gardenlets, the first of them canaries, and a policy with a wave for these."""
    names = [f"seed-{number}" for number in range(1, seeds + 1)]
    async with garden_world(server, folder, *names) as world:
        for number, name in enumerate(names):
            ring = "canary" if number < canaries else "rest"
            profile = {"metadata": {"name": name, "namespace": FLEET, "labels": {"ring": ring}}}
            spec = {"clusterManager": {"name": "test"}}
            await world.management.apply(CLUSTER_PROFILES, {**profile, "spec": spec}, field_manager="test")
            await world.add_gardenlet(name)
        stages = [
            {"name": "canary", "clusters": {"matchLabels": {"ring": "canary"}}, "maxConcurrency": canaries},
            {"name": "rest", "maxConcurrency": 10},
        ]
        policy = {"metadata": {"name": "gardenlets", "namespace": FLEET}}
        rules = {"changes": [{"kind": "gardenlet"}], "stages": [{**one, "maxFailures": 0} for one in stages]}
        await world.management.apply(ROLLOUT_POLICIES, {**policy, "spec": rules}, field_manager="test")
        async with AsyncExitStack() as running:
            await running.enter_async_context(world.gardenlets())
            yield world


async def start(world: GardenWorld, chart: str, name: str = "upgrade") -> None:
    """As `hortus rollout start gardenlet --to CHART`."""
    change = {"kind": "gardenlet", "subject": "gardenlet", "to": chart}
    rollout = {"apiVersion": ROLLOUTS.api_version, "kind": "Rollout"}
    policy = await world.management.get(ROLLOUT_POLICIES, "gardenlets", FLEET)
    terms = {name: part for name, part in policy["spec"].items() if name != "changes"}
    spec = {"change": change, "execute": "Patch", "policyName": "gardenlets", "policy": terms}
    await world.management.create(ROLLOUTS, {**rollout, "metadata": {"name": name, "namespace": FLEET}, "spec": spec})


async def ended(world: GardenWorld, phase: str, name: str = "upgrade") -> Object:
    async def look() -> Object | None:
        found = await world.management.get(ROLLOUTS, name, FLEET)
        return found if (found.get("status") or {}).get("phase") == phase else None

    return await until(look)


async def settle(world: GardenWorld, clock: MovedClock, operator: Manager, *names: str) -> None:
    """Let the time be over for which these Seeds have to stay well."""
    for name in names:
        await world.condition(name, "SeedHealthy", "Progressing", reason="Settling")
    clock.offset += SETTLE + 1.0
    (controller,) = [one for one in operator.controllers if one.name == OPERATOR]
    controller.enqueue_all()
    for name in names:
        await world.healthy(name)


async def versions(world: GardenWorld) -> dict[str, str]:
    return {name: await world.image(name) for name in world.seeds}


@pytest.mark.usefixtures("render_workers")
async def test_six_seeds_are_upgraded_in_two_waves(server: TestServer, tmp_path: Path) -> None:
    async with fleet(server, tmp_path, 6, canaries=1) as world, world.operating(rollouts=True):
        for name in world.seeds:
            await world.healthy(name)
        await start(world, world.chart(NEW))
        await ended(world, "Succeeded")
        assert set((await versions(world)).values()) == {f"v{NEW}"}


async def test_a_bad_version_is_stopped_at_the_first_of_six_seeds(server: TestServer, tmp_path: Path) -> None:
    clock = MovedClock()
    async with (
        fleet(server, tmp_path, 6, canaries=1) as world,
        world.operating(rollouts=True, settle=SETTLE, clock=clock) as operator,
    ):
        await settle(world, clock, operator, *world.seeds)
        await start(world, world.chart(BROKEN))
        found = await ended(world, "Halted")
        assert "GardenletReady is Unknown" in str(found["status"])
        assert (await versions(world)).pop("seed-1") == f"v{BROKEN}"
        others = {name: version for name, version in (await versions(world)).items() if name != "seed-1"}
        assert set(others.values()) == {f"v{OLD}"}
        # Another rollout takes the seed of the first wave back, though its gardenlet is down.
        await start(world, world.chart(OLD), "back")
        await settle(world, clock, operator, "seed-1")
        await ended(world, "Succeeded", "back")
        assert set((await versions(world)).values()) == {f"v{OLD}"}


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(StepError("away for now", reason="ChartUnavailable", actor=Actor.PROVIDER), id="registry"),
        pytest.param(ServiceUnavailable("away for now"), id="seed"),
    ],
)
async def test_an_error_that_passes_does_not_halt_a_rollout(
    server: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fail(*given: object, **options: object) -> None:
        raise error

    async with fleet(server, tmp_path, 2, canaries=1) as world, world.operating(rollouts=True):
        for name in world.seeds:
            await world.healthy(name)
        with monkeypatch.context() as patched:
            patched.setattr(GardenletDeployer, "deploy", fail)
            await start(world, world.chart(NEW))
            found = await world.condition("seed-1", "GardenletReconciled", "False", text="away for now")
            title = f"Generation {found['metadata']['generation']} "
            await world.condition("seed-1", "SeedHealthy", "Progressing", reason="NotApplied", text=title)
        await ended(world, "Succeeded")
        assert set((await versions(world)).values()) == {f"v{NEW}"}


async def test_labelled_gardenlets_move_to_the_charts_of_the_operator_in_waves(
    server: TestServer, tmp_path: Path
) -> None:
    async with fleet(server, tmp_path, 3, canaries=1) as world:
        async with world.operating(rollouts=True):
            for name in world.seeds:
                await world.healthy(name)
        label = {"metadata": {"labels": {AUTO_UPDATE: "true"}}}
        for name in ("seed-1", "seed-2"):
            await world.management.patch(GARDENLETS, name, label, "garden")
        async with world.operating(rollouts=True, chart=world.chart(NEW)):

            async def moved() -> bool:
                found = [await world.image(name) for name in ("seed-1", "seed-2")]
                return found == [f"v{NEW}", f"v{NEW}"]

            await until(moved)
        rollouts = (await world.management.list(ROLLOUTS, FLEET)).items
        assert [one["spec"]["change"]["to"] for one in rollouts] == [world.chart(NEW)]
        assert await world.image("seed-3") == f"v{OLD}"


async def outcome(world: GardenWorld, name: str = "upgrade") -> str:
    """The phase in which the rollout ends, however long that takes."""
    async with world.management.watch(ROLLOUTS, FLEET, initial_events=True) as events:
        async for event in events:
            phase: str = (event.object.get("status") or {}).get("phase", "")
            if event.type != "BOOKMARK" and event.object["metadata"]["name"] != name:
                continue
            if phase in ("Succeeded", "Halted"):
                return phase
    raise AssertionError("the watch ended")


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_fifty_seeds_are_upgraded_in_waves_and_a_bad_version_stops_at_the_first(
    server: TestServer, tmp_path: Path
) -> None:
    async with fleet(server, tmp_path, 50, canaries=2) as world, world.operating(rollouts=True, settle=SETTLE):
        began = time.monotonic()
        for name in world.seeds:
            await world.healthy(name)
        print(f"50 seeds registered and well after {time.monotonic() - began:.1f} s")
        began = time.monotonic()
        await start(world, world.chart(NEW))
        assert await outcome(world) == "Succeeded"
        assert set((await versions(world)).values()) == {f"v{NEW}"}
        print(f"50 seeds upgraded in waves of 2 and 10 in {time.monotonic() - began:.1f} s, {SETTLE:g} s of them each")
        began = time.monotonic()
        await start(world, world.chart(BROKEN), "bad")
        assert await outcome(world, "bad") == "Halted"
        found = await versions(world)
        bad = sorted(name for name, version in found.items() if version == f"v{BROKEN}")
        print(f"the bad version was stopped after {time.monotonic() - began:.1f} s, on {len(bad)} of 50 seeds: {bad}")
        assert bad == ["seed-1", "seed-2"]
        assert {version for name, version in found.items() if name not in bad} == {f"v{NEW}"}
