"""Time as a dependency: everything that waits or stamps takes a `Clock`, so that tests move time by hand.

The fake beside it is `hortus.testing.FakeClock`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


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
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)
