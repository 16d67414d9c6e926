"""The queue against a model of it, driven at random: no key lost, none twice, order kept, delays to the instant."""

from __future__ import annotations

import asyncio
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hortus.engine.backoff import Backoff
from hortus.engine.lanes import Flows
from hortus.engine.queue import TURN_EVERY, Queue
from hortus.testing import FakeClock

KEYS = st.sampled_from([f"{flow}{number}" for flow in "xyz" for number in range(3)])
PRIORITIES = st.integers(0, 3)


class QueueMachine(RuleBasedStateMachine):
    fair = False

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock(monotonic=0.0, now=0.0)
        self.waiting: dict[str, tuple[int, int]] = {}
        self.running: set[str] = set()
        self.again: dict[str, int] = {}
        self.delayed: dict[str, tuple[float, int, int]] = {}
        self.failures: dict[str, int] = {}
        self.order = 0
        self.taken = 0

    @initialize()
    def begin(self) -> None:
        flows = Flows[str](lambda key: key[0], limit=2) if self.fair else None
        self.queue: Queue[str] = Queue(
            clock=self.clock, backoff=Backoff(first=1, cap=8, jitter=0), flows=flows, random=Random(0)
        )

    def model_add(self, key: str, priority: int) -> None:
        if key in self.running:
            self.again[key] = min(priority, self.again.get(key, priority))
        elif key not in self.waiting or priority < self.waiting[key][0]:
            self.order += 1
            self.waiting[key] = (priority, self.order)

    def model_delay(self, key: str, seconds: float, priority: int) -> None:
        when = self.clock.monotonic() + seconds
        if key not in self.delayed or when < self.delayed[key][0]:
            self.order += 1
            self.delayed[key] = (when, self.order, priority)

    @rule(key=KEYS, priority=PRIORITIES)
    def add(self, key: str, priority: int) -> None:
        self.queue.add(key, priority=priority)
        self.model_add(key, priority)

    @rule(key=KEYS, seconds=st.integers(1, 5), priority=PRIORITIES)
    def add_later(self, key: str, seconds: int, priority: int) -> None:
        self.queue.add(key, after=seconds, priority=priority)
        self.model_delay(key, seconds, priority)

    @rule(seconds=st.integers(1, 4))
    def pass_time(self, seconds: int) -> None:
        end = self.clock.monotonic() + seconds
        asyncio.run(self.clock.advance(seconds))
        for key, (when, _, priority) in sorted(self.delayed.items(), key=lambda item: item[1]):
            if when <= end:
                del self.delayed[key]
                self.model_add(key, priority)

    def flow_full(self, key: str) -> bool:
        return self.fair and sum(running[0] == key[0] for running in self.running) >= 2

    @rule()
    def take(self) -> None:
        ready = {key: place for key, place in self.waiting.items() if not self.flow_full(key)}
        if self.waiting:
            self.taken += 1
        key = self.queue.take()
        if not ready:
            assert key is None
            return
        assert key in ready, "a key that may run is handed out"
        bands = {priority for priority, _ in ready.values()}
        turn, left = divmod(self.taken, TURN_EVERY)
        band = 1 + turn % 3 if left == 0 and 1 + turn % 3 in bands else min(bands)
        rivals = [place for rival, place in ready.items() if place[0] == band and (not self.fair or rival[0] == key[0])]
        assert ready[key] == min(rivals), "first come first served in its band, and in its flow where fair"
        del self.waiting[key]
        self.delayed.pop(key, None)
        self.running.add(key)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        self.queue.done(key)
        self.running.remove(key)
        if key in self.again:
            self.model_add(key, self.again.pop(key))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), succeeded=st.booleans())
    def settle(self, data: st.DataObject, succeeded: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        if succeeded:
            self.queue.forget(key)
            self.failures.pop(key, None)
            return
        delay = self.queue.retry(key)
        assert delay == min(8, 2 ** self.failures.get(key, 0))
        self.failures[key] = self.failures.get(key, 0) + 1
        self.model_delay(key, delay, 1)

    @rule(key=KEYS)
    def discard(self, key: str) -> None:
        self.queue.discard(key)
        for held in (self.waiting, self.again, self.delayed, self.failures):
            held.pop(key, None)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "queue"):
            return
        assert len(self.queue) == len(self.waiting)
        assert set(self.queue.running) == self.running
        assert self.queue.delayed == len(self.delayed)
        for key, (when, _, _) in self.delayed.items():
            assert self.queue.due_in(key) == when - self.clock.monotonic()


class FairQueueMachine(QueueMachine):
    fair = True


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestFairQueue = FairQueueMachine.TestCase
TestFairQueue.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
