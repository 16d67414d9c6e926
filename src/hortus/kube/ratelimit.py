"""A token bucket per connection, as Go clients have it: `qps` on average, `burst` at once, first come first served.

Fairness comes from reservation: each caller takes its place on arrival, even when that place lies in the future,
and then sleeps until its time. Nobody overtakes and nobody is woken to find the bucket empty.
"""

from __future__ import annotations

from hortus.kube.clock import Clock


class RateLimiter:
    """Lets `burst` calls pass at once and `qps` calls a second after that."""

    def __init__(self, qps: float, burst: int, *, clock: Clock) -> None:
        self._clock = clock
        self.allow(qps, burst)
        self._next = clock.monotonic() - self._depth
        """When the bucket would have been filled; each call moves it on by one interval."""

    def allow(self, qps: float, burst: int) -> None:
        """Let so much pass from now on; places taken before stay. Raises ValueError."""
        if qps <= 0 or burst < 1:
            raise ValueError(f"a rate limit needs qps > 0 and burst >= 1, not {qps} and {burst}")
        self._interval = 1.0 / qps
        self._depth = burst * self._interval

    def reserve(self) -> float:
        """Take the next place and return the seconds until its turn (0 when it is now)."""
        now = self._clock.monotonic()
        self._next = max(self._next, now - self._depth) + self._interval
        return max(0.0, self._next - now)

    async def acquire(self) -> float:
        """Return when this caller's turn has come, with the seconds waited. A cancelled wait gives its place back."""
        delay = self.reserve()
        if delay > 0:
            await self.wait(delay)
        return delay

    async def wait(self, delay: float) -> None:
        """Sleep until a reserved turn has come."""
        try:
            await self._clock.sleep(delay)
        except BaseException:
            self._next -= self._interval
            raise
