"""A clock for tests that run in the machine's own time, but for which an hour is too long."""

from __future__ import annotations

from hortus.kube.clock import SystemClock


class MovedClock(SystemClock):
    """The machine's clock, moved by `offset` seconds from the moment in which a test sets it.

    Timers do not move: who asks the time has to be made to look again.
    """

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = offset

    def now(self) -> float:
        return super().now() + self.offset
