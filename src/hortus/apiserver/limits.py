"""The limits of one server: connections, requests, watches, and bytes held for clients.

A server without limits runs out of memory. So each of these is bounded, no user has more than half of any, and a
request beyond a limit gets 429 with Retry-After, which clients of Kubernetes obey. kube-apiserver bounds requests in
the same way (`--max-requests-inflight`, `--max-mutating-requests-inflight`, priority and fairness), and watches
separately; it does not bound bytes.
"""

from __future__ import annotations

import msgspec

from hortus.apiserver.tenants import ROOT_CLUSTER, Holder
from hortus.kube.errors import TooManyRequests
from hortus.kube.listeners import LIMITS

_RETRY_AFTER = 1.0
"""Seconds; the same as kube-apiserver."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
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
    tls_hello: float = LIMITS.tls_hello
    """Seconds for the TLS handshake."""
    first_request: float = LIMITS.head
    """Seconds between the end of the TLS handshake and the first complete request head."""
    idle: float = LIMITS.idle
    """Seconds between two requests of a connection, the second one's head included."""
    body: float = LIMITS.body
    """Seconds that a client may take to send one body (kube-apiserver's --request-timeout)."""
    stalled: float = LIMITS.stalled
    """Seconds in which a client must take some of what it is sent."""

    def within(self, connections: int) -> ServerLimits:
        """The limits for a server with at most this many connections, since each request in progress and each watch
        needs one."""
        return msgspec.structs.replace(
            self,
            watches=min(self.watches, max(connections * 3 // 4, 2)),
            reads=min(self.reads, max(connections // 4, 2)),
            writes=min(self.writes, max(connections // 8, 2)),
        )


class Bound:
    """A limit of `most`, of which each holder gets up to half, and the users of a logical cluster three quarters.

    An administrator of a logical cluster can make any number of users; the root cluster is shared by all.

    A single amount above that is given to a holder that holds nothing, as long as any is left.
    """

    __slots__ = ("_groups", "_held", "_most", "_taken")

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._held: dict[Holder, int] = {}
        self._groups: dict[str, int] = {}

    def take(self, holder: Holder, amount: int = 1) -> None:
        """Takes an amount. Raises TooManyRequests without taking anything."""
        held, group = self._held.get(holder, 0), self._groups.get(holder[0], 0)
        too_many = self._taken + amount > self._most or (held + amount) * 2 > self._most
        if holder[0] != ROOT_CLUSTER:
            too_many |= (group + amount) * 4 > self._most * 3
        if too_many and (held or self._taken * 2 > self._most):
            raise TooManyRequests("Too many requests, please try again later.", retry_after=_RETRY_AFTER)
        self._taken += amount
        self._held[holder] = held + amount
        self._groups[holder[0]] = group + amount

    def give(self, holder: Holder, amount: int = 1) -> None:
        """Returns an amount."""
        self._taken -= amount
        group = self._groups[holder[0]] - amount
        if group:
            self._groups[holder[0]] = group
        else:
            del self._groups[holder[0]]
        left = self._held[holder] - amount
        if left:
            self._held[holder] = left
        else:
            del self._held[holder]
