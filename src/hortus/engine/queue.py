"""The work queue: which key is reconciled next.

Keys go in from watches, timers and failures; workers take them out. A key is held once however often it is added, is
never in two workers at once, and when it is added while it is in work it comes again afterwards. People go before
machines: `Priority` orders bands, and inside a band keys are served first come first served, or fair between flows
(`hortus.engine.lanes`). So that no band starves, the lower ones take turns at every 16th key: of 48 keys, one at least
comes from each band that has one. The key at place p of its band is taken after at most 48 p others.

Everything happens on one event loop without locks and, but for a worker that finds nothing to do, without awaits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable, Mapping
from enum import IntEnum
from random import Random
from typing import Generic, TypeVar

from hortus.engine.backoff import Backoff
from hortus.engine.delays import Delays
from hortus.engine.lanes import Fair, Fifo, Flows, Lane
from hortus.engine.metrics import QueueMeter
from hortus.kube.clock import Clock

K = TypeVar("K", bound=Hashable)

TURN_EVERY = 16
"""One key in so many is the turn of a lower band: each of the three has 2 % of the work, whatever floods the others."""

FREE_STEPS = 16
"""Times in a row that a reconcile is called again at once before it is slowed down: some go step by step."""

LEAST_PAUSE = 1.0
"""Seconds: a shorter pause that a reconcile asks for after a failure does not replace the back-off."""


class Priority(IntEnum):
    """The reason why a key is in the queue; lower is served first."""

    EVENT = 0
    """Something changed: somebody may be waiting for it."""
    RETRY = 1
    """It failed, asked to be called again at this time, or follows from a change that concerns many."""
    INITIAL = 2
    """It was there when we started."""
    RESYNC = 3
    """Nothing happened; we look at it from time to time."""


_LOWER = tuple(priority for priority in Priority if priority is not Priority.EVENT)
BAND_EVERY = TURN_EVERY * len(_LOWER)
"""Keys of which at least one comes from each band that has keys that may run."""


class QueueClosed(Exception):
    """The queue gives out no more keys."""


class Queue(Generic[K]):
    """A deduplicating priority queue with delays and back-off for each key."""

    def __init__(
        self,
        *,
        clock: Clock,
        backoff: Backoff | None = None,
        flows: Flows[K] | None = None,
        meter: QueueMeter | None = None,
        random: Random | None = None,
    ) -> None:
        self._monotonic = clock.monotonic
        self._backoff = backoff or Backoff()
        self._flows = flows
        self._random = random or Random()  # noqa: S311 - jitter, not secrecy
        self._meter = meter or QueueMeter()
        self._meter.observes(self)
        self._fair: list[Fair[K]] = [Fair(flows) for _ in Priority] if flows is not None else []
        self._lanes: list[Lane[K]] = [*self._fair] if flows is not None else [Fifo() for _ in Priority]
        self._waiting: dict[K, int] = {}
        self._running: dict[K, float] = {}
        self._again: dict[K, int] = {}
        self._failures: dict[K, int] = {}
        self._hurries: dict[K, int] = {}
        """Times in a row that each key was asked for again at once."""
        self._delays: Delays[K] = Delays(clock, self.add_at)
        self._takers: deque[asyncio.Future[None]] = deque()
        self._watchers: list[asyncio.Future[None]] = []
        self._taken = 0
        self._closed = False

    # Producers.

    def add(self, key: K, *, priority: int = Priority.EVENT, after: float = 0.0) -> None:
        """Enqueue `key`, now or `after` seconds. What waits with a lesser priority moves up."""
        if after > 0.0:
            if not self._closed:
                self._delays.add(key, after, priority)
        else:
            self.add_at(key, priority)

    def add_at(self, key: K, priority: int) -> None:
        """`add` without delay, as the watches call it."""
        if self._closed:
            return
        if key in self._running:
            known = self._again.get(key)
            if known is None:
                self._meter.adds += 1
            if known is None or priority < known:
                self._again[key] = priority
            return
        known = self._waiting.get(key)
        if known is None:
            self._meter.adds += 1
            self._enter(key, priority, self._monotonic())
        elif priority < known:
            self._enter(key, priority, self._lanes[known].discard(key))

    def retry(self, key: K, *, after: float | None = None, firm: bool = False) -> float:
        """Count a failure of `key` and have it again after its back-off, or `after` seconds if that is longer.

        A `firm` wish of at least `LEAST_PAUSE` counts although the back-off has grown beyond it. Returns the delay.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = self._backoff.delay(failures, random=self._random)
        if after is not None:
            asked = self._backoff.stretched(after, random=self._random)
            delay = asked if firm and after >= LEAST_PAUSE else max(asked, delay)
        self._meter.retries += 1
        self.add(key, priority=Priority.RETRY, after=delay)
        return delay

    def repeat(self, key: K, after: float) -> float:
        """`key` succeeded and is wanted again after `after` seconds, to the second; returns the delay.

        Less than the first delay of the back-off means at once; who says so more than `FREE_STEPS` times in a row is
        slowed down by the back-off.
        """
        self._failures.pop(key, None)
        if after >= self._backoff.first:
            self._hurries.pop(key, None)
            delay = after
        else:
            hurries = self._hurries.get(key, 0)
            self._hurries[key] = hurries + 1
            slowed = hurries >= FREE_STEPS
            delay = self._backoff.delay(hurries - FREE_STEPS, random=self._random) if slowed else after
        self.add(key, priority=Priority.RETRY, after=delay)
        return delay

    def forget(self, key: K) -> None:
        """`key` succeeded: its next failure begins with the first delay again."""
        if self._failures:
            self._failures.pop(key, None)
        if self._hurries:
            self._hurries.pop(key, None)

    def failures(self, key: K) -> int:
        """The number of failures of `key` in a row."""
        return self._failures.get(key, 0)

    def discard(self, key: K) -> None:
        """Take `key` out wherever it waits, as when another replica has become its owner."""
        known = self._waiting.pop(key, None)
        if known is not None:
            self._lanes[known].discard(key)
        self._again.pop(key, None)
        self._failures.pop(key, None)
        self._hurries.pop(key, None)
        self._delays.cancel(key)
        self._tell_idle()

    # Consumers.

    def take(self) -> K | None:
        """The next key, or None when there is none for now. The caller owes a `done`.

        What the key waited for with a delay is dropped: the reconcile that now begins looks at everything.
        """
        if self._closed or not self._waiting:
            return None
        found = self._pop()
        if found is None:
            return None
        key, since = found
        now = self._monotonic()
        del self._waiting[key]
        self._running[key] = now
        self._delays.cancel(key)
        if self._flows is not None:
            self._flows.started(key)
        self._meter.waited.observe(now - since)
        return key

    async def get(self) -> K:
        """The next key, waiting for one; raises QueueClosed. The caller owes a `done`."""
        while True:
            key = self.take()
            if key is not None:
                return key
            if self._closed:
                raise QueueClosed
            await self._wait_for_key()

    def done(self, key: K) -> float:
        """The work on `key` is over; returns the seconds it took. When it was added meanwhile it waits again."""
        now = self._monotonic()
        seconds = now - self._running.pop(key)
        self._meter.worked.observe(seconds)
        if self._flows is not None:
            flow = self._flows.finished(key)
            for lane in self._fair:
                lane.release(flow)
            self._wake()
        if self._again:
            priority = self._again.pop(key, None)
            if priority is not None and not self._closed:
                self._enter(key, priority, now)
        if self._watchers:
            self._tell_idle()
        return seconds

    # Lifecycle and state.

    def close(self) -> None:
        """Give out no more keys and take none; what is in work may end. Workers in `get` see QueueClosed."""
        self._closed = True
        self._delays.close()
        while self._takers:
            _release(self._takers.popleft())
        self._tell_idle()

    @property
    def closed(self) -> bool:
        return self._closed

    async def join(self) -> None:
        """Return when nothing is in work and, unless closed, nothing waits to be taken now; delays do not count."""
        while self._busy():
            watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._watchers.append(watcher)
            await watcher

    def __len__(self) -> int:
        """The number of keys that can be taken now."""
        return len(self._waiting)

    @property
    def delayed(self) -> int:
        """The number of keys that wait for their time."""
        return len(self._delays)

    @property
    def waiting(self) -> Mapping[K, int]:
        """The keys that wait to be taken now, with their priorities; read only."""
        return self._waiting

    @property
    def all_failures(self) -> Mapping[K, int]:
        """The keys that failed last, with how often in a row; read only."""
        return self._failures

    def next_due(self, most: int) -> list[tuple[K, float]]:
        """Up to `most` keys that come by themselves, with the seconds until then, the next first."""
        return self._delays.next(most)

    @property
    def running(self) -> dict[K, float]:
        """The keys in work, with the monotonic time at which each was taken; read only."""
        return self._running

    def ages(self) -> list[float]:
        """Seconds since when each key in work is in work."""
        now = self._monotonic()
        return [now - started for started in self._running.values()]

    def due_in(self, key: K) -> float | None:
        """Seconds until `key` comes by itself, or None."""
        return self._delays.remaining(key)

    def _enter(self, key: K, priority: int, since: float) -> None:
        self._waiting[key] = priority
        self._lanes[priority].add(key, since)
        if self._takers:
            self._wake()

    def _pop(self) -> tuple[K, float] | None:
        self._taken += 1
        turns, kept = divmod(self._taken, TURN_EVERY)
        if not kept:
            lane = self._lanes[_LOWER[turns % len(_LOWER)]]
            if lane and (found := lane.pop()) is not None:
                return found
        for lane in self._lanes:
            if lane and (found := lane.pop()) is not None:
                return found
        return None

    async def _wait_for_key(self) -> None:
        taker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._takers.append(taker)
        try:
            await taker
        except asyncio.CancelledError:
            # This worker was woken for a key and dies: the next one has to come for it.
            if taker.done() and not taker.cancelled():
                self._wake()
            elif taker in self._takers:  # a wake may have passed over it since it was cancelled
                self._takers.remove(taker)
            raise

    def _wake(self) -> None:
        while self._takers and self._waiting:
            if _release(self._takers.popleft()):
                return

    def _busy(self) -> bool:
        return bool(self._running) or (bool(self._waiting) and not self._closed)

    def _tell_idle(self) -> None:
        if self._watchers and not self._busy():
            watchers, self._watchers = self._watchers, []
            for watcher in watchers:
                _release(watcher)


def _release(future: asyncio.Future[None]) -> bool:
    if future.done():
        return False
    future.set_result(None)
    return True
