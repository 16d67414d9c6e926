"""A circuit breaker for one cluster: who does not answer is left alone, and asked again now and then by one probe.

Closed: calls pass. Open: calls fail at once, for a time that grows with each failed probe and is spread by jitter.
Half-open: one probe is under way; its success closes, its failure opens for longer.
"""

from __future__ import annotations

from random import Random

from hortus.engine.backoff import Backoff


class Breaker:
    """Counts; whoever holds it keeps the time."""

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
        self.open = True
        delay = self._backoff.delay(self._openings, random=self._random)
        self._openings += 1
        return delay
