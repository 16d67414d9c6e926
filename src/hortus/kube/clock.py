"""Time as a dependency: everything that waits or stamps takes a `Clock`, so that tests move time by hand.

The fake beside it is `hortus.testing.FakeClock`.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Wall-clock time in seconds since the Unix epoch; may jump."""

    def monotonic(self) -> float:
        """Seconds that only grow; for intervals and deadlines."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock's monotonic time."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
