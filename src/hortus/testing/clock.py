"""Time under the control of a test.

A `FakeClock` stands still until the test moves it. `advance` walks from one due sleeper to the next and lets the event
loop run dry after each, so that code which sleeps again, or schedules earlier timers, is seen in the right order. A
timer runs in the context in which it was made, as the loop's do. Code that waits for a real socket is not visible here:
wait for a condition instead.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from contextvars import copy_context

from hortus.kube.clock import Timer

_MAX_ROUNDS = 10_000
"""Turns of the loop after which `settle` reports that it never comes to rest."""

_BLIND_ROUNDS = 50
"""Turns on a loop that does not report ready callbacks (uvloop)."""


class _FakeTimer:
    __slots__ = ("_callback", "_context", "when")

    def __init__(self, when: float, callback: Callable[[], object]) -> None:
        self.when = when
        self._context = copy_context()
        self._callback: Callable[[], object] | None = callback

    @property
    def live(self) -> bool:
        return self._callback is not None

    def cancel(self) -> None:
        self._callback = None

    def fire(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            self._context.run(callback)


class FakeClock:
    """A `Clock` that moves only by `advance`, `stall`, `skip` and `jump`; starts at 2023-01-01T12:00:00Z."""

    def __init__(self, *, now: float = 1_672_574_400.0, monotonic: float = 1_000.0) -> None:
        self._wall_offset = now - monotonic
        self._monotonic = monotonic
        self._timers: list[tuple[float, int, _FakeTimer]] = []
        self._sequence = 0

    def now(self) -> float:
        return self._monotonic + self._wall_offset

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: None if woken.done() else woken.set_result(None))
        try:
            await woken
        finally:
            timer.cancel()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        timer = _FakeTimer(self._monotonic + max(seconds, 0.0), callback)
        self._sequence += 1
        heapq.heappush(self._timers, (timer.when, self._sequence, timer))
        return timer

    @property
    def sleepers(self) -> int:
        """The number of pending timers and sleeps."""
        return sum(timer.live for _, _, timer in self._timers)

    @property
    def next_due(self) -> float | None:
        """Seconds until the next sleeper, or None."""
        self._drop_dead()
        return self._timers[0][0] - self._monotonic if self._timers else None

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass on both clocks; each sleeper wakes at its own instant, the loop settles in between."""
        end = self._monotonic + seconds
        await self.settle()
        while (timer := self._pop_due(end)) is not None:
            self._monotonic = max(self._monotonic, timer.when)
            timer.fire()
            if not self._due(self._monotonic):
                await self.settle()
        self._monotonic = end
        await self.settle()

    async def stall(self, seconds: float) -> None:
        """Lets `seconds` pass as for a stopped process: nothing runs meanwhile, everything due runs after."""
        self.skip(seconds)
        while (timer := self._pop_due(self._monotonic)) is not None:
            timer.fire()
        await self.settle()

    def skip(self, seconds: float) -> None:
        """Lets `seconds` pass on both clocks before any callback runs, as a process sees time after SIGCONT."""
        self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """Steps the wall clock alone, as an administrator or NTP does; no sleeper is affected."""
        self._wall_offset += seconds

    def skewed(self, seconds: float) -> SkewedClock:
        """The clock of another machine: the same passing of time, the wall clock off by `seconds`."""
        return SkewedClock(self, seconds)

    async def settle(self) -> None:
        """Give the loop turns until no callback is ready; raises RuntimeError when it spins without end."""
        ready = getattr(asyncio.get_running_loop(), "_ready", None)
        for round_number in range(_MAX_ROUNDS):
            await asyncio.sleep(0)
            if round_number >= _BLIND_ROUNDS if ready is None else not ready:
                return
        raise RuntimeError(f"the event loop was still busy after {_MAX_ROUNDS} turns: something spins without sleeping")

    def _drop_dead(self) -> None:
        while self._timers and not self._timers[0][2].live:
            heapq.heappop(self._timers)

    def _due(self, until: float) -> bool:
        self._drop_dead()
        return bool(self._timers) and self._timers[0][0] <= until

    def _pop_due(self, until: float) -> _FakeTimer | None:
        return heapq.heappop(self._timers)[2] if self._due(until) else None


class SkewedClock:
    """A `Clock` which shares a `FakeClock`'s passing of time and differs by a constant on the wall."""

    def __init__(self, base: FakeClock, skew: float) -> None:
        self._base = base
        self._skew = skew

    def now(self) -> float:
        return self._base.now() + self._skew

    def monotonic(self) -> float:
        return self._base.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._base.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return self._base.call_later(seconds, callback)

    def jump(self, seconds: float) -> None:
        self._skew += seconds
