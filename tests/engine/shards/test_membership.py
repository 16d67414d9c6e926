"""Membership under faults, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import pytest
from tests.engine.shards.world import KEYS, Process, World

from hortus.engine.runnables import on_one_replica
from hortus.engine.shards import HELD, Permit, Shards, membership
from hortus.engine.shards.roster import MemberRoster
from hortus.kube.fencing import check_fence
from hortus.kube.objects import ObjectKey


@asynccontextmanager
async def world_of(replicas: int) -> AsyncIterator[World]:
    made = World("membership")
    made.slow = False
    for _ in range(replicas):
        made.join()
    await made.clock.advance(10)
    try:
        yield made
    finally:
        assert made.broken == []
        await made.close()


def held_by(process: Process) -> int:
    return sum(map(process.shards.holds, KEYS))


def name_of(process: Process) -> str:
    return next(
        name for name, lease in process.world.server.leases.items() if lease["spec"]["holderIdentity"] == process.name
    )


async def test_two_replicas_share_all_objects_and_know_each_other() -> None:
    async with world_of(2) as world:
        one, two = world.processes
        assert held_by(one) + held_by(two) == len(KEYS)
        assert one.shards.members == two.shards.members == sorted(world.server.leases)
        assert [process.shards.problem for process in world.processes] == ["", ""]


async def test_one_that_leaves_hands_over_at_once() -> None:
    async with world_of(2) as world:
        one, two = world.processes
        one.tasks.append(asyncio.create_task(one.leave()))
        await world.clock.advance(20)
        assert held_by(two) == len(KEYS)
        assert list(world.server.leases) == [name_of(two)], "its lease is gone, too"


async def test_a_lease_that_somebody_deletes_ends_its_members_work_and_it_joins_again() -> None:
    async with world_of(2) as world:
        one, two = world.processes
        world.server.delete(name_of(one), "", "")
        await world.clock.advance(1)
        assert one.shards.counts.lost == 1
        await world.clock.advance(45)
        assert held_by(one) + held_by(two) == len(KEYS)
        assert one.shards.counts.lost == 1


async def test_a_lease_that_somebody_empties_is_lost_to_its_member() -> None:
    async with world_of(1) as world:
        world.server.patch(name_of(world.processes[0]), {"spec": {"holderIdentity": ""}})
        await world.clock.advance(1)
        assert world.processes[0].shards.counts.lost == 1
        await world.clock.advance(10)
        assert held_by(world.processes[0]) == len(KEYS)


async def test_a_member_whose_watch_shows_nothing_lists_and_lets_others_join() -> None:
    async with world_of(1) as world:
        world.processes[0].hang_watch(hangs=True)
        late = world.join()
        await world.clock.advance(40)
        assert late.shards.joined
        assert held_by(late) > 0


async def test_one_that_only_seems_silent_is_asked_about_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "_BLIND", 10**9)
    async with world_of(2) as world:
        one, two = world.processes
        one.hang_watch(hangs=True)
        await world.clock.advance(60)
        assert one.shards.members == two.shards.members
        assert two.shards.counts.lost == 0


async def test_the_lease_reports_how_many_objects_are_held() -> None:
    async with world_of(1) as world:
        process = world.processes[0]
        process.shards.held = lambda: held_by(process)
        await world.clock.advance(5)
        assert world.server.leases[name_of(process)]["metadata"]["annotations"][HELD] == str(len(KEYS))


class Errands:
    """Some works that must each run on one replica, offered to all."""

    NAMES = tuple(f"errand-{number}" for number in range(8))

    def __init__(self) -> None:
        self.running: list[tuple[str, str]] = []
        self.offers: list[asyncio.Task[None]] = []

    def offer(self, process: Process) -> None:
        for name in self.NAMES:
            self.offers.append(asyncio.create_task(on_one_replica(process.shards, name, self._work(name, process))))

    def _work(self, name: str, process: Process) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            self.running.append((name, process.name))
            try:
                await asyncio.Event().wait()
            finally:
                self.running.remove((name, process.name))

        return work

    def by(self, process: Process) -> int:
        return sum(where == process.name for _, where in self.running)

    @property
    def each_once(self) -> bool:
        return sorted(name for name, _ in self.running) == sorted(self.NAMES)


async def test_what_must_run_once_moves_to_one_that_comes_and_back_when_that_is_gone() -> None:
    async with world_of(1) as world:
        errands = Errands()
        errands.offer(world.processes[0])
        await world.clock.advance(1)
        assert errands.each_once
        late = world.join()
        errands.offer(late)
        await world.clock.advance(40)
        assert errands.each_once
        assert 0 < errands.by(late) < len(Errands.NAMES)
        late.tasks.append(asyncio.create_task(late.leave()))
        await world.clock.advance(20)
        assert errands.each_once
        assert errands.by(late) == 0


async def test_work_that_comes_to_its_own_end_is_not_begun_again() -> None:
    async with world_of(1) as world:
        begun: list[bool] = []

        async def work() -> None:
            begun.append(True)

        await on_one_replica(world.processes[0].shards, "errand", work)
        assert begun == [True]


class _Lapsing:
    """The part of `Shards` that a runnable meets, with a lease that runs out when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.left = asyncio.Event()
        self.looks: list[Callable[[Callable[[ObjectKey], bool]], int]] = []
        self.join()

    def join(self) -> None:
        self._roster = MemberRoster("a", renew_deadline=10, settling=5, monotonic=lambda: self.now)
        self._roster.renewed(self.now)
        self._roster.first_look(())
        for look in self.looks:
            look(self._roster.holds)

    def enter(self, key: ObjectKey, interrupt: Callable[[], None]) -> Permit | None:
        return self._roster.enter(key, interrupt)

    def leave(self, permit: Permit, *, clean: bool) -> None:
        permit.roster.leave(permit, clean=clean)
        self.left.set()

    def on_gain(self, look: Callable[[Callable[[ObjectKey], bool]], int]) -> None:
        self.looks.append(look)


async def test_work_that_meets_a_lapsed_lease_before_it_is_revoked_begins_again_after_joining() -> None:
    shards, begun = _Lapsing(), list[float]()

    async def work() -> None:
        begun.append(shards.now)
        if len(begun) == 1:
            shards.now = 60.0  # the process was stopped meanwhile
            check_fence()

    running = asyncio.create_task(on_one_replica(cast(Shards, shards), "errand", work))
    await shards.left.wait()
    assert len(begun) == 1
    shards.join()
    await running
    assert len(begun) == 2


async def test_after_an_outage_nobody_waits_for_the_leases_that_the_living_have_lost() -> None:
    """They could not be given back while the server was away; their members are the ones to say that they are gone."""
    async with world_of(3) as world:
        world.up = False
        await world.clock.advance(60)
        assert sum(map(held_by, world.processes)) == 0
        world.up = True
        for process in world.processes:
            process.catch_up()
        # A request that was lost is given up after ten seconds at most; a lease would take fifteen more.
        await world.clock.advance(15)
        assert sum(map(held_by, world.processes)) == len(KEYS)
        assert len(world.server.leases) == 3
