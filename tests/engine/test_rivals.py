"""An operator that Hortus replaces, and Hortus: in one election, under the operator's own Lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from random import Random

import pytest
from prometheus_client import generate_latest
from tests.engine.fake_api import LEASES, WIDGETS, FakeApi, widget

from hortus.engine.leases import Elector
from hortus.engine.manager import Manager
from hortus.engine.outcomes import Result
from hortus.engine.rivals import MADE_LABELS, RivalLeases, is_hortus
from hortus.engine.runnables import LeadershipLost
from hortus.engine.sources import Watch
from hortus.kube.errors import ConnectionFailed
from hortus.kube.fencing import Fenced, check_fence
from hortus.kube.objects import Object, ObjectKey
from hortus.testing import FakeClock

NAME = "operator.example.org"
HOME, AWAY = "hortus-system", "operator-system"
KEY = ObjectKey("default", "one")


class GoOperator:
    """An operator that elects its leader as client-go does, and gives the Lease back when it ends."""

    def __init__(self, world: World, namespace: str) -> None:
        self.elector = Elector(
            world.api, name=NAME, namespace=namespace, identity="operator-1", clock=world.clock, random=Random(1)
        )
        self.task = asyncio.create_task(self.elector.acquire())

    @property
    def leading(self) -> bool:
        return self.elector.leading

    async def end(self) -> None:
        self.task.cancel()
        await self.elector.release()

    async def die(self) -> None:
        self.task.cancel()
        await self.elector.rest()


class Work:
    """Writes once a second for its key, as long as it may."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.written = 0
        self.free = False
        """Work that no rival does."""
        self.attempts = 0
        self.interrupted = 0

    async def reconcile(self, key: ObjectKey) -> Result | None:
        self.attempts += 1
        try:
            while True:
                self.write()
                await self._world.clock.sleep(1)
        except asyncio.CancelledError:
            self.interrupted += 1
            raise

    def write(self) -> None:
        check_fence()
        if not self.free and self._world.is_rival_leading():
            self._world.broken.append(f"both write at {self._world.clock.monotonic()}")
        self.written += 1

    async def run(self) -> None:
        await self.reconcile(KEY)


class Hortus:
    """One replica: a controller next to a rival, one that has none, and a part that only the leader runs."""

    def __init__(self, world: World, name: str) -> None:
        self.election = Elector(
            world.api, name="hortus", namespace=HOME, identity=name, clock=world.clock, random=Random(name)
        )
        self.manager = Manager(world.api, clock=world.clock, election=self.election, grace=1, random=Random(name))
        self.work, self.leaders, self.other = (Work(world) for _ in range(3))
        self.other.free = True
        widgets = Watch(self.manager.cache(WIDGETS))
        self.rivals = RivalLeases(world.api, names=[NAME], namespace=HOME, clock=world.clock, random=Random(name))
        with self.manager.excluding(self.rivals):
            self.manager.controller("excluded", self.work, sources=[widgets], deadline=None)
            self.manager.add("leader's", self.leaders.run)
        self.manager.controller("other", self.other, sources=[widgets], deadline=None)
        self.task = asyncio.create_task(self.manager.run())

    async def end(self) -> None:
        self.manager.stop()

    async def die(self) -> None:
        """All that it does stops, and no Lease is given back."""
        self.election._valid_until = float("-inf")
        for lease in self.rivals._leases.values():
            await lease.withdraw()
            lease.elector._valid_until = float("-inf")
        self.task.cancel()


class World:
    def __init__(self) -> None:
        self.api, self.clock = FakeApi(), FakeClock()
        self.api.put(WIDGETS, widget(KEY.name))
        self.operators: list[GoOperator] = []
        self.replicas: list[Hortus] = []
        self.broken: list[str] = []
        self.gap = False
        """True while an operator may have taken a Lease that nobody had seen."""

    def is_rival_leading(self) -> bool:
        return not self.gap and any(operator.leading for operator in self.operators)

    def operator(self, namespace: str = AWAY) -> GoOperator:
        made = GoOperator(self, namespace)
        self.operators.append(made)
        return made

    def hortus(self, name: str = "one") -> Hortus:
        made = Hortus(self, name)
        self.replicas.append(made)
        return made

    def lease(self, namespace: str) -> Object:
        found: Object = self.api.objects[LEASES, ObjectKey(namespace, NAME)]
        return found

    def holder(self, namespace: str) -> str:
        return str(self.lease(namespace)["spec"]["holderIdentity"])


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    for operator in made.operators:
        await operator.die()
    made.api.down = None
    for replica in made.replicas:
        replica.task.cancel()
    await made.clock.advance(60)
    for replica in made.replicas:
        with suppress(asyncio.CancelledError, LeadershipLost):
            await replica.task
    assert made.broken == []


def released(world: World, namespace: str) -> None:
    """The Lease that an operator left when it ended."""
    spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3}
    world.api.put(LEASES, {"metadata": {"name": NAME, "namespace": namespace}, "spec": spec})


async def test_the_lease_of_an_operator_that_ended_is_held_and_one_made_at_home(world: World) -> None:
    released(world, AWAY)
    hortus = world.hortus()
    await world.clock.advance(3)
    assert [world.holder(place) for place in (AWAY, HOME)] == ["hortus/hortus-system"] * 2
    assert is_hortus(world.holder(AWAY))
    assert world.lease(HOME)["metadata"]["labels"] == MADE_LABELS
    assert "labels" not in world.lease(AWAY)["metadata"], "it is the operator's"
    assert hortus.work.written > 0 < hortus.leaders.written


async def test_an_operator_that_starts_meanwhile_stands_by_and_leads_when_hortus_has_ended(world: World) -> None:
    released(world, AWAY)
    hortus = world.hortus()
    await world.clock.advance(3)
    operator = world.operator()
    await world.clock.advance(60)
    assert not operator.leading
    assert hortus.work.interrupted == 0
    await hortus.end()
    await world.clock.advance(7)
    assert operator.leading
    assert world.holder(HOME) == "", "also the one that nobody waits for"
    assert hortus.task.done()


async def test_work_waits_for_the_operator_that_works_and_begins_when_that_has_ended(world: World) -> None:
    operator = world.operator()
    await world.clock.advance(3)
    hortus = world.hortus()
    await world.clock.advance(60)
    assert operator.leading
    assert (hortus.work.written, hortus.leaders.written) == (0, 0)
    assert held_metric(hortus) == 1
    assert hortus.other.attempts == 1, "the work of others has begun"
    world.api.put(WIDGETS, widget(KEY.name, spec={"changed": True}))
    await world.clock.advance(1)
    assert hortus.work.attempts == 0
    await operator.end()
    await world.clock.advance(5)
    assert hortus.work.written > 0 < hortus.leaders.written
    assert held_metric(hortus) == 0


def held_metric(hortus: Hortus) -> float:
    lines = generate_latest(hortus.manager.registry).decode().splitlines()
    return float(next(line.rpartition(" ")[2] for line in lines if line.startswith("hortus_rival_lease_held{")))


async def test_the_lease_of_an_operator_that_was_killed_has_to_run_out(world: World) -> None:
    operator = world.operator()
    await world.clock.advance(3)
    hortus = world.hortus()
    await world.clock.advance(3)
    await operator.die()
    await world.clock.advance(11)
    assert hortus.work.written == 0
    await world.clock.advance(8)
    assert hortus.work.written > 0


async def test_an_operator_in_a_namespace_without_a_lease_ends_the_work_until_it_ends(world: World) -> None:
    hortus = world.hortus()
    await world.clock.advance(5)
    world.gap = True
    operator = world.operator()
    await world.clock.settle()
    world.gap = False
    assert operator.leading
    assert (hortus.work.interrupted, hortus.leaders.interrupted) == (1, 1)
    assert hortus.other.interrupted == 0, "the work of others goes on"
    written = hortus.work.written
    await world.clock.advance(60)
    assert hortus.work.written == written
    await operator.end()
    await world.clock.advance(5)
    assert hortus.work.written > written
    assert world.holder(AWAY) == "hortus/hortus-system"


async def test_a_lease_taken_by_force_ends_the_work_at_once(world: World) -> None:
    hortus = world.hortus()
    await world.clock.advance(5)
    lease = world.lease(HOME)
    world.api.put(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "intruder"}})
    await world.clock.settle()
    assert hortus.work.interrupted == 1
    assert not hortus.rivals.free


async def test_a_lease_that_is_deleted_is_made_again_at_home_and_forgotten_elsewhere(world: World) -> None:
    released(world, AWAY)
    hortus = world.hortus()
    await world.clock.advance(5)
    for place in (HOME, AWAY):
        world.api.remove(LEASES, NAME, place)
    await world.clock.advance(30)
    assert world.holder(HOME) == "hortus/hortus-system"
    assert (LEASES, ObjectKey(AWAY, NAME)) not in world.api.objects
    assert hortus.rivals.free
    assert hortus.work.interrupted == 0


async def test_a_process_that_was_stopped_sends_nothing_when_it_goes_on(world: World) -> None:
    hortus = world.hortus()
    await world.clock.advance(5)
    written = hortus.work.written
    world.clock.skip(60)
    assert not hortus.rivals.free, "no timer has run yet, and still it knows"
    with pytest.raises(Fenced):
        hortus.rivals._check()
    await world.clock.stall(0)
    assert hortus.work.written == written


async def test_without_the_api_server_the_work_ends_before_another_may_begin(world: World) -> None:
    hortus = world.hortus()
    await world.clock.advance(5)
    world.api.down = ConnectionFailed("api", "connection refused")
    await world.clock.advance(9)
    assert hortus.work.interrupted == 0
    await world.clock.advance(2)
    assert not hortus.rivals.free
    written = hortus.work.written
    await world.clock.advance(20)
    assert hortus.work.written == written


@pytest.mark.parametrize("killed", [False, True])
async def test_the_operator_stands_by_while_one_replica_follows_another(world: World, killed: bool) -> None:
    released(world, AWAY)
    first = world.hortus("one")
    await world.clock.advance(5)
    operator, second = world.operator(), world.hortus("two")
    await world.clock.advance(5)
    assert second.work.written == 0
    await (first.die() if killed else first.end())
    await world.clock.advance(60)
    assert not operator.leading
    assert second.work.written > 0
    await second.end()
    await world.clock.advance(10)
    assert operator.leading


async def test_a_candidacy_that_fails_unexpectedly_is_not_swallowed(world: World) -> None:
    rivals = RivalLeases(world.api, names=[NAME], namespace=HOME, clock=world.clock)
    world.api.failures = [RuntimeError("broken")]
    with pytest.raises(RuntimeError, match="broken"):
        await asyncio.wait_for(rivals.hold(), timeout=60)


async def test_a_lease_that_nobody_renews_stops_the_work_for_ten_minutes_at_most(world: World) -> None:
    spec = {"holderIdentity": "anybody", "leaseDurationSeconds": 2_000_000_000, "renewTime": "0"}
    world.api.put(LEASES, {"metadata": {"name": NAME, "namespace": "elsewhere"}, "spec": spec})
    hortus = world.hortus()
    await world.clock.advance(590)
    assert hortus.work.written == 0
    await world.clock.advance(20)
    assert hortus.work.written > 0


async def test_two_installations_do_not_exclude_each_other(world: World) -> None:
    """The other one's Lease keeps the operator out, too."""
    spec = {"holderIdentity": "hortus/elsewhere", "leaseDurationSeconds": 15, "renewTime": "0"}
    hortus = world.hortus()
    for second in range(20):
        metadata = {"name": NAME, "namespace": "elsewhere"}
        world.api.put(LEASES, {"metadata": metadata, "spec": {**spec, "renewTime": str(second)}})
        await world.clock.advance(2)
    assert hortus.work.written > 0
    assert world.holder("elsewhere") == "hortus/elsewhere"
