"""Time as a dependency: everything that waits or stamps takes a `Clock`, so that tests move time by hand.

The fake is `hortus.testing.FakeClock`.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from typing import Protocol

_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
_monotonic: Callable[[], float] = (
    time.monotonic if _BOOTTIME is None else functools.partial(time.clock_gettime, _BOOTTIME)
)


class Timer(Protocol):
    def cancel(self) -> None:
        """Prevents the callback from being called; has no effect after it was called."""


class Clock(Protocol):
    def now(self) -> float:
        """Wall-clock time in seconds since the Unix epoch; may jump."""

    def monotonic(self) -> float:
        """Seconds that only grow; for intervals and deadlines."""

    async def sleep(self, seconds: float) -> None:
        """Returns after `seconds` of this clock's monotonic time."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Calls `callback` on the running loop after `seconds` of monotonic time; many waits can share one timer."""


class SystemClock:
    """The machine's clocks. Its monotonic time includes suspends of the machine where the system counts them
    (CLOCK_BOOTTIME), because a lease expires for all others meanwhile. Timers do not; they fire late after a suspend.
    """

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return _monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)
