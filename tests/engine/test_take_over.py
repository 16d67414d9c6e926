"""A replica that takes keys over looks at its objects, and what its sources know of others."""

from __future__ import annotations

from tests.engine.fake_api import widget

from hortus.engine import Cache, Change, Controller, Result, Watch, to_label
from hortus.engine.metrics import EngineMetrics
from hortus.engine.shards.roster import Permit
from hortus.kube.objects import Object, ObjectKey
from hortus.testing import FakeClock

OWNER = "example.org/owner"
ONE, TWO = ObjectKey("default", "one"), ObjectKey("default", "two")


def part(name: str, *, owner: str) -> Object:
    return widget(name, metadata={"labels": {OWNER: owner}})


class Replica:
    """A replica that holds the objects that a test assigns to it."""

    def __init__(self) -> None:
        self.held: set[ObjectKey] = set()
        self.seen: list[ObjectKey] = []
        self.clock = FakeClock()
        self.objects, self.parts = Cache("objects"), Cache("parts")
        self.objects.replace((), 1)
        self.parts.replace((), 1)
        self.controller = Controller(
            "widgets",
            self,
            sources=[Watch(self.objects), Watch(self.parts, to=to_label(OWNER), when=_is_no_secret)],
            assignment=self,
            clock=self.clock,
            metrics=EngineMetrics(),
        )

    def holds(self, key: ObjectKey) -> bool:
        return key in self.held

    def enter(self, key: ObjectKey, interrupt: object) -> Permit | None:
        return _AlwaysPermit(key) if key in self.held else None

    def leave(self, permit: Permit, *, clean: bool) -> None:
        """Counts nothing."""

    async def reconcile(self, key: ObjectKey) -> Result | None:
        self.seen.append(key)
        return None


class _AlwaysPermit(Permit):
    def __init__(self, key: ObjectKey) -> None:
        self.key = key

    def check(self) -> None:
        """Always."""


def _is_no_secret(change: Change) -> bool:
    return "secret" not in change.key.name


async def test_what_an_object_that_is_gone_left_behind_is_the_heirs_work() -> None:
    replica = Replica()
    replica.parts.put(part("part", owner="one"))
    replica.parts.put(part("another", owner="one"))
    replica.parts.put(part("not-ours", owner="two"))
    replica.parts.put(part("secret", owner="three"))
    await replica.controller.start()
    await replica.clock.settle()
    assert replica.seen == [], "it is another replica's"

    replica.held.add(ONE)
    assert replica.controller.take_over(replica.holds) == 0, "no object was taken over, only its remains"
    await replica.clock.settle()
    assert replica.seen == [ONE]

    replica.objects.put(widget("two"))
    replica.held = {TWO}
    assert replica.controller.take_over(replica.holds) == 1
    await replica.clock.settle()
    assert replica.seen == [ONE, TWO]
    await replica.controller.stop()
    assert replica.clock.sleepers == 0


async def test_a_controller_that_has_not_begun_is_not_filled_yet() -> None:
    replica = Replica()
    replica.parts.put(part("part", owner="one"))
    replica.held.add(ONE)
    replica.controller.take_over(replica.holds)
    await replica.controller.start()
    await replica.clock.settle()
    assert replica.seen == [ONE]
    await replica.controller.stop()
