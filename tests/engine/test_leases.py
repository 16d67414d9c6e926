from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.fake_api import FakeApi

from hortus.engine.leases import LEASES, Elector, LeaseTimes
from hortus.engine.manager import Manager
from hortus.engine.outcomes import Result
from hortus.engine.runnables import LeadershipLost
from hortus.engine.sources import Trigger
from hortus.kube.errors import ConnectionFailed
from hortus.kube.objects import Object, ObjectKey
from hortus.testing import FakeClock

KEY = (LEASES, ObjectKey("kcp-system", "f1c68560.kyma-project.io"))


class Candidate:
    """One process with a clock of its own: letting the others' clocks run while its own stands is a SIGSTOP."""

    def __init__(self, api: FakeApi, name: str, *, wall: float = 1_672_574_400.0) -> None:
        self.clock = FakeClock(now=wall, monotonic=1000 * Random(name).random())
        self.name = name
        self.elector = Elector(
            api, name=KEY[1].name, namespace=KEY[1].namespace, identity=name, clock=self.clock, random=Random(name)
        )
        self.task = asyncio.create_task(self.elector.acquire())

    @property
    def leading(self) -> bool:
        return self.elector.leading


class World:
    def __init__(self) -> None:
        self.api = FakeApi()
        self.candidates: list[Candidate] = []

    def join(self, name: str, *, wall: float = 1_672_574_400.0) -> Candidate:
        made = Candidate(self.api, name, wall=wall)
        self.candidates.append(made)
        return made

    async def advance(self, seconds: float, *, without: Candidate | None = None) -> None:
        """Let time pass for all, in steps short enough that nobody overtakes; at no step do two lead."""
        for _ in range(round(seconds * 4)):
            for candidate in self.candidates:
                if candidate is not without:
                    await candidate.clock.advance(0.25)
            if without is None:
                assert sum(candidate.leading for candidate in self.candidates) <= 1

    @property
    def lease(self) -> Object:
        spec: Object = self.api.objects[KEY]["spec"]
        return spec


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    for candidate in made.candidates:
        candidate.task.cancel()
        if candidate.elector._renewing is not None:
            candidate.elector._renewing.cancel()


async def test_one_leads_and_the_other_stands_by(world: World) -> None:
    one, two = world.join("one"), world.join("two")
    await world.advance(60)
    assert [one.leading, two.leading] == [True, False]
    assert two.elector.leader == "one"
    assert world.lease["holderIdentity"] == "one"
    assert (world.lease["leaseDurationSeconds"], world.lease["leaseTransitions"]) == (15, 0)
    assert world.lease["acquireTime"] == "2023-01-01T12:00:00.000000Z" < world.lease["renewTime"]


async def test_a_released_lease_is_taken_over_at_once(world: World) -> None:
    one, two = world.join("one"), world.join("two")
    await world.advance(5)
    await one.elector.release()
    assert not one.leading
    assert (world.lease["holderIdentity"], world.lease["leaseDurationSeconds"]) == ("", 1)
    await world.advance(3)
    assert two.leading
    assert world.lease["leaseTransitions"] == 1


async def test_a_dead_leader_is_replaced_when_its_lease_has_run_out_and_not_before(world: World) -> None:
    one, two = world.join("one"), world.join("two")
    await world.advance(5)
    await world.advance(14, without=one)
    assert not two.leading
    await world.advance(6, without=one)
    assert two.leading
    assert two.task.done()


async def test_clocks_that_disagree_by_hours_and_jump_change_nothing(world: World) -> None:
    one, two = world.join("one"), world.join("two", wall=1_672_574_400.0 + 7200)
    await world.advance(10)
    for seconds in (3600, -7200, 86_400):
        one.clock.jump(seconds)
        two.clock.jump(-seconds)
        await world.advance(20)
        assert [one.leading, two.leading] == [True, False]


async def test_a_leader_that_was_stopped_finds_out_before_it_does_anything(world: World) -> None:
    one, two = world.join("one"), world.join("two")
    await world.advance(5)
    await world.advance(60, without=one)
    assert two.leading
    one.clock.skip(60)
    assert not one.leading, "no timer has run yet, and still it knows"
    await one.clock.stall(0)
    await one.elector.lost()
    await world.advance(30)
    assert [one.leading, two.leading] == [False, True]
    assert world.lease["holderIdentity"] == "two"


async def test_when_the_api_is_away_the_leader_gives_up_before_another_may_begin(world: World) -> None:
    one, two = world.join("one"), world.join("two")
    await world.advance(5)
    world.api.down = ConnectionFailed("api", "connection refused")
    await world.advance(7)
    assert one.leading
    await world.advance(4)
    assert not one.leading
    await asyncio.wait_for(one.elector.lost(), 60)
    await world.advance(60)
    assert not two.leading
    world.api.down = None
    await world.advance(20)
    assert two.leading


async def test_an_api_that_hangs_does_not_keep_a_leader_beyond_its_time(world: World) -> None:
    one, two = world.join("one"), world.join("two")
    await world.advance(5)
    world.api.silent = True
    await world.advance(11)
    assert not one.leading
    await asyncio.wait_for(one.elector.lost(), 60)
    world.api.silent = False
    await world.advance(40)
    assert two.leading


async def test_short_outages_are_lived_through(world: World) -> None:
    one = world.join("one")
    await world.advance(5)
    for _ in range(5):
        world.api.down = ConnectionFailed("api", "connection reset")
        await world.advance(6)
        world.api.down = None
        await world.advance(4)
        assert one.leading


async def test_a_lease_edited_by_hand_is_kept_and_one_taken_by_force_is_lost(world: World) -> None:
    one = world.join("one")
    await world.advance(5)
    lease = world.api.objects[KEY]
    world.api.put(LEASES, {**lease, "metadata": {**lease["metadata"], "labels": {"seen": "yes"}}})
    await world.advance(5)
    assert one.leading
    lease = world.api.objects[KEY]
    assert lease["metadata"]["labels"] == {"seen": "yes"}
    world.api.put(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "intruder"}})
    await world.advance(3)
    assert not one.leading


async def test_a_leader_creates_a_lease_that_was_deleted(world: World) -> None:
    one = world.join("one")
    await world.advance(5)
    world.api.remove(LEASES, KEY[1].name, KEY[1].namespace)
    await world.advance(3)
    assert world.lease["holderIdentity"] == "one"
    await world.advance(30)
    assert one.leading


async def test_who_comes_back_under_its_old_identity_leads_on_without_a_transition(world: World) -> None:
    one = world.join("one")
    await world.advance(5)
    acquired = world.lease["acquireTime"]
    world.candidates.remove(one)
    again = world.join("one")
    await world.advance(1)
    assert again.leading
    assert (world.lease["leaseTransitions"], world.lease["acquireTime"]) == (0, acquired)


async def test_many_candidates_have_one_leader_through_a_storm(world: World) -> None:
    random = Random(7)
    crowd = [world.join(f"c{number}", wall=1e9 + 1000 * number) for number in range(4)]
    for _ in range(30):
        event = random.choice(["down", "up", "hang", "wait", "wait"])
        world.api.down = ConnectionFailed("api", "away") if event == "down" else None
        world.api.silent = event == "hang"
        await world.advance(random.choice([1, 4, 9]))
    world.api.down, world.api.silent = None, False
    await world.advance(20)
    for candidate in crowd:
        if candidate.task.done() and not candidate.leading:
            candidate.task = asyncio.create_task(candidate.elector.acquire())
    await world.advance(40)
    assert sum(candidate.leading for candidate in crowd) == 1


async def test_a_stopped_process_begins_no_reconcile_when_it_comes_back() -> None:
    api, clock, trigger = FakeApi(), FakeClock(), Trigger()
    reconciled: list[str] = []

    class Notes:
        async def reconcile(self, key: ObjectKey) -> Result | None:
            reconciled.append(key.name)
            return None

    elector = Elector(api, name="l", namespace="n", identity="me", clock=clock)
    manager = Manager(api, clock=clock, election=elector)
    manager.controller("notes", Notes(), sources=[trigger], workers=1)
    running = asyncio.create_task(manager.run())
    await clock.settle()
    trigger.fire(ObjectKey("", "before"))
    await clock.settle()
    assert reconciled == ["before"]
    clock.skip(60)
    trigger.fire(ObjectKey("", "after"))
    await clock.advance(10)
    with pytest.raises(LeadershipLost):
        await running
    assert reconciled == ["before"]


def test_times_that_leave_no_room_are_refused() -> None:
    with pytest.raises(ValueError, match="duration > renew_deadline"):
        LeaseTimes(duration=10, renew_deadline=10)
    for duration in (float("inf"), float("nan")):
        with pytest.raises(ValueError, match="finite duration"):
            LeaseTimes(duration=duration)


@given(duration=st.floats(0.5, 100), share=st.floats(0.9, 0.999))
def test_a_lease_never_says_less_than_its_holder_counts_with(duration: float, share: float) -> None:
    """Another waits for what the lease says; the holder goes on for its renew deadline."""

    async def written() -> int:
        api, clock = FakeApi(), FakeClock()
        times = LeaseTimes(duration=duration, renew_deadline=duration * share, retry_period=duration / 10)
        elector = Elector(api, name="lease", namespace="ns", clock=clock, times=times)
        await elector.acquire()
        spec = api.objects[LEASES, ObjectKey("ns", "lease")]["spec"]
        elector._renewing.cancel() if elector._renewing is not None else None
        return int(spec["leaseDurationSeconds"])

    assert asyncio.run(written()) >= duration


@pytest.mark.parametrize("duration", ["soon", 0, -5, None])
async def test_a_lease_whose_duration_is_nonsense_counts_as_one_of_ours(world: World, duration: object) -> None:
    spec = {"holderIdentity": "gone", "leaseDurationSeconds": duration}
    world.api.put(LEASES, {"metadata": {"name": KEY[1].name, "namespace": KEY[1].namespace}, "spec": spec})
    one = world.join("one")
    await world.advance(14)
    assert not one.leading
    await world.advance(4)
    assert one.leading
