"""A controller whose object moves while it is at it."""

from __future__ import annotations

import asyncio

import pytest

from hortus.engine import Controller, Result, Trigger
from hortus.engine.metrics import EngineMetrics
from hortus.engine.shards import LeaseRecord, MemberRoster
from hortus.engine.shards.roster import Permit
from hortus.kube.fencing import Fenced, check_fence
from hortus.kube.objects import ObjectKey
from hortus.testing import FakeClock

KEYS = [ObjectKey("default", str(number)) for number in range(10)]
LATE = LeaseRecord(
    member="late",
    identity="late",
    version=1,
    uid="late",
    resource_version="1",
    duration=15.0,
    view=frozenset(),
    released=False,
)


class Stage:
    """One controller, one worker an object, over a roster in the test's hands."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.roster = MemberRoster("me", renew_deadline=10, settling=5, monotonic=self.clock.monotonic)
        self.roster.renewed(self.clock.monotonic())
        self.roster.first_look([])
        self.trigger = Trigger()
        self.begun: list[ObjectKey] = []
        self.stopped: list[type[BaseException]] = []
        self.controller = Controller(
            "trial",
            self,
            sources=[self.trigger],
            workers=len(KEYS),
            assignment=self,
            clock=self.clock,
            metrics=EngineMetrics(),
        )
        self.left: list[tuple[ObjectKey, bool]] = []

    def holds(self, key: ObjectKey) -> bool:
        return self.roster.holds(key)

    def enter(self, key: ObjectKey, interrupt: object) -> Permit | None:
        return self.roster.enter(key, interrupt)  # type: ignore[arg-type]

    def leave(self, permit: Permit, *, clean: bool) -> None:
        self.left.append((permit.key, clean))
        self.roster.leave(permit, clean=clean)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        self.begun.append(key)
        try:
            await self.clock.sleep(3)
            check_fence()
            await asyncio.Event().wait()
        except (asyncio.CancelledError, Fenced) as error:
            self.stopped.append(type(error))
            raise
        return None


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_work_on_what_has_moved_is_cut_off_and_neither_failed_nor_tried_again(stage: Stage) -> None:
    await stage.controller.start()
    for key in KEYS:
        stage.trigger.fire(key)
    await stage.clock.settle()
    stage.roster.saw(LATE)
    moved = {permit.key for permit in stage.roster.foreign()}
    assert 0 < len(moved) < len(KEYS)
    stage.roster.revoke(stage.roster.foreign())
    await stage.clock.settle()
    assert dict(stage.left) == dict.fromkeys(moved, False)
    assert stage.stopped == [asyncio.CancelledError] * len(moved)
    assert stage.controller._meter.errors == 0
    assert (len(stage.controller.queue), stage.controller.queue.delayed) == (0, 0)
    for key in KEYS:
        stage.trigger.fire(key)
    await stage.clock.settle()
    assert len(stage.begun) == len(KEYS), "what is not ours is not begun, what is in work is not begun twice"
    await stage.controller.stop()


async def test_work_that_finds_the_lease_over_stops_before_its_request_and_is_forgotten(stage: Stage) -> None:
    await stage.controller.start()
    stage.trigger.fire(KEYS[0])
    await stage.clock.settle()
    await stage.clock.stall(60)
    assert stage.stopped == [Fenced]
    assert stage.left == [(KEYS[0], False)]
    assert (stage.controller._meter.errors, stage.controller.queue.delayed) == (0, 0)
    await stage.controller.stop()
