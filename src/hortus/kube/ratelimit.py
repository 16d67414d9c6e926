"""A token bucket per connection, as in Go clients: `qps` on average, `burst` at once, first come first served.

Fairness comes from reservation: each caller takes its place on arrival, even when that place lies in the future, and
then sleeps until its time. No caller overtakes another, and none is woken to find the bucket empty.
"""

from __future__ import annotations

from hortus.kube.clock import Clock


class RateLimiter:
    """Lets `burst` calls pass at once and then `qps` calls a second."""

    def __init__(self, qps: float, burst: int, *, clock: Clock) -> None:
        self._clock = clock
        self.allow(qps, burst)
        self._next = clock.monotonic() - self._depth
        """The time at which the bucket was full; each call advances it by one interval."""

    def allow(self, qps: float, burst: int) -> None:
        """Changes the rate from now on; earlier reservations stay. Raises ValueError."""
        if qps <= 0 or burst < 1:
            raise ValueError(f"a rate limit needs qps > 0 and burst >= 1, not {qps} and {burst}")
        self._interval = 1.0 / qps
        self._depth = burst * self._interval

    def reserve(self) -> float:
        """Takes the next place and returns the seconds to wait (0 for none)."""
        now = self._clock.monotonic()
        self._next = max(self._next, now - self._depth) + self._interval
        return max(0.0, self._next - now)

    async def acquire(self) -> float:
        """Returns at the time of this caller's place, with the seconds waited. A cancelled wait returns its place."""
        delay = self.reserve()
        if delay > 0:
            await self.wait(delay)
        return delay

    async def wait(self, delay: float) -> None:
        """Sleeps until a reserved place is due."""
        try:
            await self._clock.sleep(delay)
        except BaseException:
            self._next -= self._interval
            raise
