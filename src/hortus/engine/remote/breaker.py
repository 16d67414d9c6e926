"""A circuit breaker for one cluster: who does not answer is left alone, and asked again now and then by one probe.

Closed: calls pass. Open: calls fail at once, for a time that grows with each failed probe and is spread by jitter.
Half-open: one probe is under way; its success closes, its failure opens for longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random

from hortus.engine.backoff import Backoff


class Breaker:
    """Counts failures; its holder keeps the time."""

    __slots__ = ("_backoff", "_failures", "_openings", "_random", "_threshold", "open")

    def __init__(self, backoff: Backoff, *, threshold: int, random: Random) -> None:
        self._backoff = backoff
        self._threshold = threshold
        self._random = random
        self._failures = 0
        self._openings = 0
        self.open = False

    def succeeded(self) -> bool:
        """An answer came. Returns whether that closed the breaker."""
        self._failures = self._openings = 0
        was_open, self.open = self.open, False
        return was_open

    def failed(self, *, at_once: bool) -> float | None:
        """No answer came, or none that counts. Returns the seconds until a probe when the breaker is open now."""
        self._failures += 1
        if not self.open and not at_once and self._failures < self._threshold:
            return None
        # Also when it is open already: a probe that failed makes the time to the next one longer.
        self.open = True
        delay = self._backoff.delay(self._openings, random=self._random)
        self._openings += 1
        return delay


class Waiters:
    """Callers that wait until a breaker has closed instead of being refused."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self) -> None:
        """Return with the next `go_on`. Raises what `give_up` makes."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        finally:
            with suppress(ValueError):
                self._waiting.remove(waiter)

    def go_on(self) -> None:
        for waiter in self._taken():
            waiter.set_result(None)

    def give_up(self, error: Callable[[], Exception]) -> None:
        for waiter in self._taken():
            waiter.set_exception(error())

    def _taken(self) -> list[asyncio.Future[None]]:
        if not self._waiting:
            return []
        # Taken at once: one that waits again when it is woken belongs to the next round.
        waiting, self._waiting = self._waiting, []
        return [waiter for waiter in waiting if not waiter.done()]
