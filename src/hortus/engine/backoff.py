"""The delay before the next attempt: exponential, capped, spread by jitter.

Jitter is what keeps ten thousand objects that failed in the same second from coming back in the same second.
"""

from __future__ import annotations

import random as _random

import msgspec

LONGEST_STRETCH = 10.0
"""Seconds: what was asked for comes at most so much later, so that jitter delays no daily rotation by hours."""

_MAX_EXPONENT = 64
"""2**64 times any first delay is beyond every cap; it keeps the power from overflowing."""


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Waits `first * factor**n` seconds after failure n (from 0), at most `cap`, then varied by +-`jitter` of itself.

    The defaults are those of client-go's per-item limiter: 5 ms doubling up to 1000 s.
    """

    first: float = 0.005
    cap: float = 1000.0
    factor: float = 2.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if self.first <= 0 or self.cap < self.first or self.factor < 1 or not 0 <= self.jitter < 1:
            raise ValueError(f"{self} needs 0 < first <= cap, factor >= 1 and 0 <= jitter < 1")

    def delay(self, failures: int, *, random: _random.Random) -> float:
        """Seconds to wait when `failures` attempts have failed before this one."""
        plain = min(self.cap, self.first * self.factor ** min(failures, _MAX_EXPONENT))
        return spread(plain, self.jitter, random=random)

    def stretched(self, seconds: float, *, random: _random.Random) -> float:
        """`seconds` that somebody asked for, and up to `jitter` of it more, never less: many are asked for the same."""
        return seconds + min(self.jitter * seconds, LONGEST_STRETCH) * random.random()


def spread(seconds: float, fraction: float, *, random: _random.Random) -> float:
    """`seconds` varied evenly by up to +-`fraction` of itself."""
    return seconds * (1.0 + fraction * (2.0 * random.random() - 1.0)) if fraction else seconds
