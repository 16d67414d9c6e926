"""Limits of all listeners of Hortus: how long a client may take, and how much of a server one sender gets.

A client that sends half a request holds a connection and a file descriptor. So each step of a request has a deadline,
and places are shared out by sender: one sender has at most half of them, and a new connection takes the place of the
one that has been waited for the longest, of the sender that has the most. Source: RFC 9112, section 9.5.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from enum import IntEnum
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

import msgspec


class ListenerLimits(msgspec.Struct, frozen=True, kw_only=True):
    connections: int = 1024
    """Connections at once; one sender has half of them."""
    tls_hello: float = 10.0
    """Seconds for the TLS handshake."""
    head: float = 30.0
    """Seconds between the end of the TLS handshake and the first complete request head."""
    idle: float = 300.0
    """Seconds between two requests of a connection, the second one's head included. Go's clients keep an idle
    connection for 90 s, and a POST that meets a closed one fails."""
    body: float = 60.0
    """Seconds between the head and the end of the body (kube-apiserver's --request-timeout)."""
    stalled: float = 30.0
    """Seconds in which a client must take some of what it is sent."""
    line: int = 16 * 1024
    """Bytes of the request line and of one header; a service account token is about 1 KiB."""
    head_bytes: int = 64 * 1024
    """Bytes of a request head."""
    bodies: int = 64 * 1024 * 1024
    """Bytes of the bodies of all requests in progress; one sender has half of them."""


LIMITS: Final = ListenerLimits()

LEAST_TAKEN: Final = 64 * 1024
"""Bytes of an answer that a client must read within the time it may stall."""
ACCEPTED_AT_ONCE: Final = 64
"""Connections accepted in one turn of the loop."""
OUT_OF_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of accepting a connection when the system has no more file descriptors."""
ACCEPTS_AGAIN_AFTER: Final = 0.1
"""Seconds to wait then, when no connection can be dropped."""
LINGERING: Final = 1.0
"""Seconds for which the rest of a refused body is read, so that its sender reads the refusal."""
TLS_FAREWELL_WITHIN: Final = 1.0
"""Seconds for a peer's answer to TLS's close_notify: many clients send none."""

LARGE_HEAD: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
"""The answer to a request head that is too long; its connection ends."""
_IPV6_SITE: Final = 64
"""Bits of an IPv6 address that a sender cannot choose."""


def sender_of(peer: Any) -> str:
    """The sender of a connection by its address: an IPv4 address, or the first 64 bits of an IPv6 address.

    All connections of a Unix socket have one sender, the owner of the socket.
    """
    if not isinstance(peer, tuple):
        return ""
    address = ip_address(peer[0].partition("%")[0])
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            return f"{int(address) >> _IPV6_SITE:x}"
        address = address.ipv4_mapped
    return str(address)


class ConnectionPhase(IntEnum):
    """The step that a connection is at. All but the last may be dropped, the first ones before the others."""

    HELLO = 0
    HEAD = 1
    IDLE = 2
    BODY = 3
    WORK = 4


class ConnectionPlace:
    """The place of one connection; `drop` ends that connection."""

    __slots__ = ("drop", "held", "phase", "sender")

    def __init__(self, sender: str, drop: Callable[[], object]) -> None:
        self.sender = sender
        self.drop = drop
        self.phase = ConnectionPhase.HELLO
        self.held = 0


class _Sender:
    __slots__ = ("count", "held", "phases")

    def __init__(self) -> None:
        self.count = self.held = 0
        self.phases: tuple[dict[ConnectionPlace, None], ...] = tuple({} for _ in ConnectionPhase)

    def oldest(self) -> ConnectionPlace | None:
        """The place that has been the longest in the first step that any is at; None if all are at work."""
        for places in self.phases[: ConnectionPhase.WORK]:
            for place in places:
                return place
        return None


class ConnectionPlaces:
    """The places of one listener, and the bytes that are held for their requests, by sender."""

    def __init__(self, connections: int, held: int) -> None:
        """At most `connections` places and `held` bytes; one sender has half of each."""
        self._connections = connections
        self._bytes = held
        self._senders: dict[str, _Sender] = {}
        self._taken = self._held = 0

    def take(self, sender: str, drop: Callable[[], object]) -> ConnectionPlace | None:
        """A place for a connection, in place of one that is dropped if need be; None while all are at work."""
        own = self._senders.get(sender)
        if own is not None and own.count * 2 >= self._connections:
            if not self._make_room(own.oldest()):
                return None
        elif self._taken >= self._connections and not self._make_room(self._oldest()):
            return None
        place = ConnectionPlace(sender, drop)
        own = self._senders.setdefault(sender, _Sender())
        own.phases[ConnectionPhase.HELLO][place] = None
        own.count += 1
        self._taken += 1
        return place

    def make_room(self) -> None:
        """Drop one connection that is not at work, if there is any."""
        self._make_room(self._oldest())

    def move(self, place: ConnectionPlace, phase: ConnectionPhase) -> None:
        """Notes the step that the connection is at from now on; between two requests no bytes are held."""
        own = self._senders.get(place.sender)
        if own is None or place not in own.phases[place.phase]:
            return  # it was dropped
        del own.phases[place.phase][place]
        own.phases[phase][place] = None
        place.phase = phase
        if phase is ConnectionPhase.IDLE:
            self._release(own, place)

    def hold(self, place: ConnectionPlace, amount: int) -> bool:
        """Count bytes of the request; False if that is more than the sender may have held, or all together."""
        own = self._senders.get(place.sender)
        if own is None or self._held + amount > self._bytes or (own.held + amount) * 2 > self._bytes:
            return False
        place.held += amount
        own.held += amount
        self._held += amount
        return True

    def leave(self, place: ConnectionPlace) -> None:
        """Gives the place back; a second time it does nothing."""
        own = self._senders.get(place.sender)
        if own is None or place not in own.phases[place.phase]:
            return
        del own.phases[place.phase][place]
        self._release(own, place)
        self._taken -= 1
        own.count -= 1
        if not own.count:
            del self._senders[place.sender]

    def _release(self, own: _Sender, place: ConnectionPlace) -> None:
        own.held -= place.held
        self._held -= place.held
        place.held = 0

    def _oldest(self) -> ConnectionPlace | None:
        """Returns a place of the sender with the most, or of the next one if all of those are at work."""
        for own in sorted(self._senders.values(), key=lambda one: one.count, reverse=True):
            if (found := own.oldest()) is not None:
                return found
        return None

    def _make_room(self, place: ConnectionPlace | None) -> bool:
        if place is None:
            return False
        self.leave(place)
        place.drop()
        return True
