"""A run that leaves something has one Leftover, which is written before the book forgets the run."""

from __future__ import annotations

import asyncio
from itertools import count

from tests.domains.canary.yard import Yard, yard
from tests.domains.killing import Killer, killed_at

from hortus.domains.canary import service
from hortus.domains.clusters.types import RUNTIMES
from hortus.engine import read
from hortus.engine.leftovers.types import LEFTOVERS, Leftover
from hortus.schema import crd
from hortus.simulation.garden.workload import CRDS
from hortus.testing.apiserver import TestServer


async def prepare(here: Yard) -> None:
    """Runs leave their Shoot, and Leftovers are served."""
    await here.client.apply(CRDS, crd(Leftover), field_manager="tests")
    here.leftovers = here.leaves_shoot = True
    here.choose(use_timeout=60.0, delete_timeout=60.0)


async def recorded(here: Yard) -> list[Leftover]:
    return [read(Leftover, one) for one in (await here.client.list(LEFTOVERS, here.namespace)).items]


async def test_a_run_that_leaves_its_shoot_has_one_record_however_often_it_is_swept(here: Yard) -> None:
    await prepare(here)
    async with here.running():
        left = (await here.until_over()).history[0].name
        [found] = await recorded(here)
        await here.advance(3600.0)
        book = await here.until_over(2)
        assert book.history[0].failed == service.SWEEP
        assert [one.spec for one in await recorded(here)] == [found.spec]
    assert (found.spec.reason, found.spec.source.name, found.spec.cluster.shoot) == ("CanaryFailed", left, left)
    [item] = found.spec.items
    assert (item.what, item.where) == (f"Shoot {here.garden_namespace}/{left}", "Garden")


async def test_a_runtime_that_is_not_deleted_in_time_is_recorded_with_its_shoot(here: Yard) -> None:
    await prepare(here)
    here.holds = True
    async with here.running():
        await here.until_phase(service.DELETE)
        await here.advance(70.0)
        stuck = (await here.until_over()).history[0].name
    [found] = await recorded(here)
    assert [(item.what, item.where) for item in sorted(found.spec.items, key=lambda item: item.what)] == [
        (f"Runtime {here.namespace}/{stuck}", "Management"),
        (f"Shoot {here.garden_namespace}/{stuck}", "Garden"),
    ]


async def test_a_run_that_leaves_nothing_is_not_recorded(here: Yard) -> None:
    await prepare(here)
    here.leaves_shoot = False
    async with here.running():
        await here.until_over()
    assert await recorded(here) == []


async def test_killed_at_any_call_the_record_is_there_before_the_run_is_forgotten(server: TestServer) -> None:
    for calls in count():
        async with yard(server) as here:
            await prepare(here)
            here.holds = True
            async with here.running():
                await here.until_phase(service.DELETE)
                await here.until(lambda book: bool(here.grown))
            here.clock.skip(300.0)
            over = asyncio.create_task(here.until_over())
            killer = Killer("canary-controller", here.requests)
            struck = await killed_at(killer, calls, here.running(), over)
            if struck:
                killer.rest()
                async with here.running():
                    await over
            assert len(await recorded(here)) == 1, f"killed after {calls} calls"
            assert await here.client.get(RUNTIMES, here.grown[0], here.namespace)
        if not struck:
            break
    assert calls >= 4, "the Shoot and the ConfigMap are asked for, the record and the book are written"
