"""Time as a dependency: everything that waits or stamps takes a `Clock`, so that tests move time by hand.

The fake beside it is `hortus.testing.FakeClock`.
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
        """Make sure that the callback is not called any more; harmless when it has been."""


class Clock(Protocol):
    def now(self) -> float:
        """Wall-clock time in seconds since the Unix epoch; may jump."""

    def monotonic(self) -> float:
        """Seconds that only grow; for intervals and deadlines."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock's monotonic time."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` on the running loop after `seconds` of monotonic time; many waits can share one timer."""


class SystemClock:
    """The machine's clocks. Its monotonic time goes on while the machine is suspended, where the system can tell
    (CLOCK_BOOTTIME): a lease runs out meanwhile for all others too. Timers do not; they ring late after a suspend.
    """

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return _monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)
