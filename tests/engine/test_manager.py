from __future__ import annotations

import asyncio
import contextlib
from random import Random

import pytest
from tests.engine.fake_api import WIDGETS, FakeApi, widget
from tests.engine.shards.test_membership import world_of

from hortus.engine.controller import Controller
from hortus.engine.manager import Manager
from hortus.engine.outcomes import Result
from hortus.engine.runnables import LeadershipLost
from hortus.engine.sources import Watch
from hortus.kube.fencing import check_fence
from hortus.kube.objects import ObjectKey
from hortus.testing import FakeClock


class Part:
    """A server, an election or a client that notes what is done to it."""

    def __init__(self, name: str, journal: list[str]) -> None:
        self.name, self.journal = name, journal
        self.leading = False
        self.may_lead = asyncio.Event()
        self.has_lost = asyncio.Event()

    async def start(self) -> None:
        self.journal.append(f"{self.name} started")

    async def stop(self) -> None:
        self.journal.append(f"{self.name} stopped")

    async def acquire(self) -> None:
        await self.may_lead.wait()
        self.leading = True
        self.journal.append("leading")

    async def lost(self) -> None:
        await self.has_lost.wait()
        self.leading = False

    async def release(self) -> None:
        self.journal.append("released")


class Stage:
    def __init__(self, *, election: Part | None = None, grace: float = 30.0) -> None:
        self.clock, self.api = FakeClock(), FakeApi()
        self.manager = Manager(self.api, clock=self.clock, election=election, grace=grace, random=Random(0))
        self.journal: list[str] = [] if election is None else election.journal
        self.work_seconds = 0.0
        self.cache = self.manager.cache(WIDGETS)
        self.controller: Controller = self.manager.controller("widgets", self, sources=[Watch(self.cache)], workers=2)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        if self.work_seconds:
            self.journal.append(f"begin {key.name}")
            await self.clock.sleep(self.work_seconds)
        self.journal.append(f"reconciled {key.name}")
        return None


async def test_controllers_begin_when_the_first_list_is_complete_and_stop_leaves_nothing_behind() -> None:
    stage = Stage()
    stage.api.put(WIDGETS, widget("a"))
    running = asyncio.create_task(stage.manager.run())
    await stage.clock.settle()
    assert stage.journal == ["reconciled a"]
    assert stage.manager.started
    stage.manager.stop()
    stage.manager.stop()
    await running
    assert (stage.clock.sleepers, stage.api.streams, len(asyncio.all_tasks())) == (0, [], 1)


async def test_servers_start_first_and_stop_last_and_workers_finish_before_the_lease_is_given_back() -> None:
    journal: list[str] = []
    election = Part("election", journal)
    election.may_lead.set()
    stage = Stage(election=election)
    stage.work_seconds = 5.0
    stage.manager.add_server(Part("health", journal))
    stage.manager.on_stop(Part("client", journal).stop)
    stage.api.put(WIDGETS, widget("a"))
    running = asyncio.create_task(stage.manager.run())
    await stage.clock.settle()
    stage.manager.stop()
    await stage.clock.advance(6)
    await running
    expected = ["health started", "leading", "begin a", "reconciled a", "released", "health stopped", "client stopped"]
    assert journal == expected


async def test_a_standby_keeps_its_caches_warm_and_touches_nothing() -> None:
    election = Part("election", [])
    stage = Stage(election=election)
    stage.api.put(WIDGETS, widget("a"))
    running = asyncio.create_task(stage.manager.run())
    await stage.clock.advance(60)
    assert len(stage.cache) == 1
    assert (election.journal, stage.manager.started) == ([], False)
    election.may_lead.set()
    await stage.clock.settle()
    assert election.journal == ["leading", "reconciled a"]
    assert stage.api.count("list") == 1
    stage.manager.stop()
    await running


async def test_a_standby_that_is_stopped_goes_quietly() -> None:
    stage = Stage(election=Part("election", []))
    running = asyncio.create_task(stage.manager.run())
    await stage.clock.settle()
    stage.manager.stop()
    await running
    assert stage.journal == ["released"]


async def test_who_loses_the_lease_stops_at_once_in_the_middle_of_its_work() -> None:
    election = Part("election", [])
    election.may_lead.set()
    stage = Stage(election=election, grace=1000)
    stage.work_seconds = 100.0
    stage.api.put(WIDGETS, widget("a"))
    running = asyncio.create_task(stage.manager.run())
    await stage.clock.settle()
    election.has_lost.set()
    await stage.clock.settle()
    with pytest.raises(LeadershipLost):
        await running
    assert "reconciled a" not in stage.journal


async def test_a_part_that_fails_takes_the_manager_down_with_its_error() -> None:
    stage = Stage()

    async def fail() -> None:
        await stage.clock.sleep(1)
        raise RuntimeError("the simulated garden is on fire")

    stage.manager.add("garden", fail)
    running = asyncio.create_task(stage.manager.run())
    await stage.clock.advance(1)
    with pytest.raises(RuntimeError, match="on fire"):
        await running


async def test_a_server_that_cannot_start_is_reported_and_nothing_else_begins() -> None:
    class Taken(Part):
        async def start(self) -> None:
            raise OSError("address :8080 is in use")

    stage = Stage()
    stage.manager.add_server(Taken("health", stage.journal))
    with pytest.raises(OSError, match="in use"):
        await stage.manager.run()
    assert stage.api.calls == []


async def test_several_managers_run_side_by_side_in_one_loop() -> None:
    one, two = Stage(), Stage()
    async with one.manager.running(), two.manager.running():
        one.api.put(WIDGETS, widget("a"))
        two.api.put(WIDGETS, widget("b"))
        await one.clock.settle()
    assert (one.journal, two.journal) == (["reconciled a"], ["reconciled b"])


async def test_caches_of_another_cluster_start_and_stop_with_the_rest() -> None:
    stage, garden = Stage(), FakeApi()
    garden.put(WIDGETS, widget("shoot"))
    cache = stage.manager.caches_of(garden).get(WIDGETS)
    async with stage.manager.running():
        await cache.synced()
        assert len(cache) == 1
    assert garden.streams == []


async def test_a_part_that_fails_cancels_what_runs_inside_and_shows_why() -> None:
    stage = Stage()

    async def fail() -> None:
        await stage.clock.sleep(1)
        raise RuntimeError("the simulated garden is on fire")

    stage.manager.add("garden", fail)

    async def work() -> None:
        async with stage.manager.running():
            await asyncio.Event().wait()

    working = asyncio.create_task(work())
    await stage.clock.advance(2)
    with pytest.raises(RuntimeError, match="on fire"):
        await working
    assert stage.api.streams == []


async def test_cancelling_a_running_manager_raises_nothing_else() -> None:
    stage = Stage()

    async def work() -> None:
        async with stage.manager.running():
            await asyncio.Event().wait()

    working = asyncio.create_task(work())
    await stage.clock.settle()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert (stage.api.streams, stage.clock.sleepers) == ([], 0)


async def test_a_part_that_ends_by_itself_stops_the_manager_gracefully() -> None:
    stage = Stage()
    stage.manager.add("short", stage.clock.settle)
    await stage.manager.run()
    assert stage.api.streams == []


async def test_a_failure_in_the_last_moment_does_not_disturb_the_stop() -> None:
    stage = Stage()
    fuse = asyncio.Event()

    async def fail() -> None:
        await fuse.wait()
        raise RuntimeError("too late")

    stage.manager.add("late", fail)
    with contextlib.suppress(RuntimeError):
        async with stage.manager.running():
            fuse.set()
    await stage.clock.settle()
    assert (stage.api.streams, stage.clock.sleepers, len(asyncio.all_tasks())) == ([], 0, 1)


class Errand:
    """Something that only the leader does, and that needs a while to end."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.began = False
        self.sent: list[str] = []

    async def run(self) -> None:
        self.began = True
        try:
            while True:
                await self.stage.clock.sleep(1)
                check_fence()
                self.sent.append("request")
        finally:
            try:
                await self.stage.clock.sleep(5)
            finally:
                self.stage.journal.append("errand ended")


async def test_the_lease_is_given_back_after_what_only_the_leader_does_has_ended() -> None:
    journal: list[str] = []
    election = Part("election", journal)
    election.may_lead.set()
    stage = Stage(election=election)
    errand = Errand(stage)
    stage.manager.add("errand", errand.run)
    running = asyncio.create_task(stage.manager.run())
    await stage.clock.settle()
    assert errand.began
    stage.manager.stop()
    await stage.clock.advance(10)
    await running
    assert journal.index("errand ended") < journal.index("released")


async def test_what_only_the_leader_does_is_fenced_and_ended_at_once_when_leadership_is_lost() -> None:
    journal: list[str] = []
    election = Part("election", journal)
    election.may_lead.set()
    stage = Stage(election=election)
    stage.api.put(WIDGETS, widget("a"))
    stage.work_seconds = 100.0
    errand = Errand(stage)
    stage.manager.add("errand", errand.run)
    running = asyncio.create_task(stage.manager.run())
    await stage.clock.advance(3.5)
    assert len(errand.sent) == 3
    # The lease has expired, and no part has been informed yet.
    election.leading = False
    await stage.clock.advance(0.6)
    assert len(errand.sent) == 3
    election.has_lost.set()
    await stage.clock.advance(5)
    assert "errand ended" in journal
    with pytest.raises(LeadershipLost):
        await running


async def test_what_only_one_replica_does_ends_before_its_lease_among_the_shards_is_given_back() -> None:
    async with world_of(1) as world:
        process = world.processes[0]
        journal: list[str] = []
        manager = Manager(FakeApi(), clock=process.clock, random=Random(0), shards=process.shards)
        leave = process.shards.leave_group

        async def errand() -> None:
            journal.append("begun")
            try:
                await asyncio.Event().wait()
            finally:
                await process.clock.sleep(3)
                journal.append("ended")

        async def leave_group() -> None:
            journal.append("left")
            await leave()

        process.shards.leave_group = leave_group  # type: ignore[method-assign]
        process.shards.run = asyncio.Event().wait  # type: ignore[method-assign, assignment]
        manager.add("errand", errand)
        running = asyncio.create_task(manager.run())
        await world.clock.advance(1)
        assert journal == ["begun"]
        manager.stop()
        await world.clock.advance(10)
        await running
        assert journal == ["begun", "ended", "left"]
