"""What one server gives at most at once: connections, requests, watches, and bytes it has to hold for others.

A server that takes everything is ended by its memory. So each of these is bounded, no one user has more than half of
any, and who comes too late is told 429 with Retry-After, which clients of Kubernetes obey. kube-apiserver bounds
requests alike (`--max-requests-inflight`, `--max-mutating-requests-inflight`, priority and fairness), watches apart
from both; bytes it does not bound.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable

import msgspec

from hortus.kube.errors import TooManyRequests

_RETRY_AFTER = 1.0
"""Seconds; what kube-apiserver asks for."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    connections: int = 10_000
    """TLS connections, 58 kB each when idle; what RLIMIT_NOFILE leaves room for, if that is less."""
    reads: int = 800
    """Requests that read, in progress at once; one user has half of them (kube-apiserver: 400 in all)."""
    writes: int = 400
    """Requests that write, in progress at once; one user has half of them (kube-apiserver: 200 in all)."""
    watches: int = 8_000
    """Open watches; one user has half of them."""
    bodies: int = 128 * 1024 * 1024
    """Bytes of the bodies of all requests in progress; one user has half of them."""
    answers: int = 512 * 1024 * 1024
    """Bytes of large answers that clients have not taken yet; one user has half of them."""
    tls_hello: float = 10.0
    """Seconds for the TLS handshake."""
    first_request: float = 30.0
    """Seconds between the end of the TLS handshake and the first complete request head."""
    idle: float = 300.0
    """Seconds between two requests of a connection, the second one's head included."""
    body: float = 60.0
    """Seconds that a client may take to send one body (kube-apiserver's --request-timeout)."""
    stalled: float = 30.0
    """Seconds in which a client must take some of what it is sent."""


class Bound:
    """`most` of something, of which each holder gets up to half.

    What is larger than that by itself is given to a holder that holds nothing, while there is anything left.
    """

    __slots__ = ("_held", "_most", "_taken")

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._held: dict[Hashable, int] = {}

    def take(self, holder: Hashable, amount: int = 1) -> None:
        """Raises TooManyRequests, and then nothing is taken."""
        held = self._held.get(holder, 0)
        too_many = self._taken + amount > self._most or (held + amount) * 2 > self._most
        if too_many and (held or self._taken * 2 > self._most):
            raise TooManyRequests("Too many requests, please try again later.", retry_after=_RETRY_AFTER)
        self._taken += amount
        self._held[holder] = held + amount

    def give(self, holder: Hashable, amount: int = 1) -> None:
        """Back."""
        self._taken -= amount
        left = self._held[holder] - amount
        if left:
            self._held[holder] = left
        else:
            del self._held[holder]


_NOTICED = 0.01
"""Seconds for which one body may hold the loop without anybody noticing."""
_LONGEST_REST = 2.0
"""Seconds of rest at most."""


class Turns:
    """Large bodies are worked on one after the other, and the loop belongs to small requests as long as to them.

    What holds the loop for a second (a list of a million lists) is followed by a second without large bodies; so who
    sends nothing but them takes half of the time at most, and a small request waits for one of them, not for all.
    """

    __slots__ = ("_free_at", "_lock")

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._free_at = 0.0

    async def wait(self) -> None:
        """Return when it is the caller's turn, who then works without a pause."""
        async with self._lock:
            await asyncio.sleep(max(self._free_at - time.monotonic(), 0.0))
            # Runs when the caller has let go of the loop, and before the next one is woken.
            asyncio.get_running_loop().call_soon(self._rest, time.monotonic())

    def _rest(self, began: float) -> None:
        now = time.monotonic()
        if now - began > _NOTICED:
            self._free_at = now + min(now - began, _LONGEST_REST)
