"""Thousands of keys that are due later, behind one timer of the clock.

Time-driven work of a fleet (rotation, retry, resync) waits here, a heap entry a key, instead of in a sleeping task
each. A key waits for one instant at a time: the earliest asked for. Removed entries stay in the heap until they come
up or outnumber the living, whichever is first, so that removal costs nothing on the hot path. The timer belongs to
nobody: it is often armed inside a reconcile, whose context must not go with what is due.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from hortus.engine.scope import call_shared_later
from hortus.kube.clock import Clock, Timer

K = TypeVar("K", bound=Hashable)

_SLACK = 64
"""Dead heap entries that are never worth a rebuild."""


class Delays(Generic[K]):
    """Calls `due(key, priority)` once for each key when its time has come."""

    def __init__(self, clock: Clock, due: Callable[[K, int], None]) -> None:
        self._clock = clock
        self._due = due
        self._waiting: dict[K, tuple[float, int, int]] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._timer: Timer | None = None
        self._armed_for = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, key: K) -> bool:
        return key in self._waiting

    def remaining(self, key: K) -> float | None:
        """Seconds until `key` is due, or None when it does not wait here."""
        entry = self._waiting.get(key)
        return None if entry is None else max(0.0, entry[0] - self._clock.monotonic())

    def next(self, most: int) -> list[tuple[K, float]]:
        """Up to `most` keys with the seconds until they are due, the next first."""
        now = self._clock.monotonic()
        first = heapq.nsmallest(most, self._waiting.items(), key=lambda item: item[1])
        return [(key, max(0.0, entry[0] - now)) for key, entry in first]

    def add(self, key: K, seconds: float, priority: int) -> None:
        """Let `key` be due in `seconds`; no effect when it is due earlier already.

        An earlier one replaces a later one with its priority. Two purposes that must both come are two keys.
        """
        when = self._clock.monotonic() + seconds
        known = self._waiting.get(key)
        if known is not None and known[0] <= when:
            return
        self._sequence += 1
        self._waiting[key] = (when, self._sequence, priority)
        heapq.heappush(self._heap, (when, self._sequence, key))
        if len(self._heap) > 2 * len(self._waiting) + _SLACK:
            self._rebuild()
        if self._timer is None or when < self._armed_for:
            self._arm(when)

    def cancel(self, key: K) -> None:
        """Forget `key`; harmless when it does not wait here."""
        self._waiting.pop(key, None)

    def close(self) -> None:
        """Forget every key and give the timer back."""
        self._waiting.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _rebuild(self) -> None:
        self._heap = [(when, sequence, key) for key, (when, sequence, _) in self._waiting.items()]
        heapq.heapify(self._heap)

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = when
        self._timer = call_shared_later(self._clock, max(0.0, when - self._clock.monotonic()), self._fire)

    def _fire(self) -> None:
        self._timer = None
        # A timer may ring a little before its time; what is due within its resolution counts as due.
        now = self._clock.monotonic() + 0.0005
        while self._heap:
            when, sequence, key = self._heap[0]
            entry = self._waiting.get(key)
            if entry is None or entry[1] != sequence:
                heapq.heappop(self._heap)
            elif when <= now:
                heapq.heappop(self._heap)
                del self._waiting[key]
                self._due(key, entry[2])
            else:
                self._arm(when)
                return
