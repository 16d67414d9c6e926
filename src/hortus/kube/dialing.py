"""Opening sockets: the address check and the detection of dead peers.

The address is checked here, after names are resolved and for every attempt, so that no DNS answer and no spelling of an
address evades the check. Clients for clusters that an untrusted kubeconfig names are given `LOCAL_NETWORKS`, or
`METADATA_NETWORKS` where clusters may be on this machine.
"""

from __future__ import annotations

import errno
import socket
import weakref
from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, NamedTuple

from hortus.kube.tls import Contexts

Network = IPv4Network | IPv6Network

_MACHINE = ("0.0.0.0/8", "127.0.0.0/8", "::/128", "::1/128")
_LINK = ("169.254.0.0/16", "fe80::/10")
_METADATA = ("100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::254/128")
"""Alibaba Cloud; Azure's platform; Oracle Cloud; services of AWS that instances reach by IPv6, credentials of EKS pods
among them; Google Cloud by IPv6. The others are link-local."""
METADATA_NETWORKS: tuple[Network, ...] = tuple(map(ip_network, _LINK + _METADATA))
"""Link-local addresses, and the metadata services of clouds: no cluster, registry or webhook is there."""
LOCAL_NETWORKS: tuple[Network, ...] = (*map(ip_network, _MACHINE), *METADATA_NETWORKS)
"""This machine, and those."""

_TRANSLATED = ip_network("64:ff9b::/96")
"""IPv4 addresses behind a translator (RFC 6052)."""
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
"""Seconds, seconds and tries: a silent watch on a dead connection ends within a minute."""


class AddressDenied(OSError):
    """The address lies in a network that this client must not reach."""

    def __init__(self, address: str) -> None:
        super().__init__(errno.EACCES, "the address is not allowed")
        self.address = address


class Memory:
    """A budget of bytes that the answers of many clients share while they are read."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0

    def take(self, size: int) -> bool:
        """Reserves `size` bytes; False when the budget does not hold them."""
        if self.held + size > self.limit:
            return False
        self.held += size
        return True

    def give(self, size: int) -> None:
        """Returns `size` bytes to the budget."""
        self.held -= size


class Dialing(NamedTuple):
    """The settings and budgets that the clients of one pool share."""

    contexts: Contexts | None = None
    """Shares TLS contexts between clients that trust the same CA."""
    make_socket: Callable[[int, int, int], socket.socket] = socket.socket
    """Makes a socket of a family, type and protocol; a pool passes one that counts."""
    opened: Callable[[], None] | None = None
    """Called when an attempt to connect ended, its TLS handshake included, whether it succeeded or failed."""
    memory: Memory | None = None
    """The budget for long answers; an answer that does not fit fails with ResponseTooLarge."""


class Dialer:
    """Makes the sockets of one client."""

    def __init__(
        self, deny: Iterable[Network] = (), *, make: Callable[[int, int, int], socket.socket] = socket.socket
    ) -> None:
        self._deny = tuple(deny)
        self._make = make
        self._made: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def __call__(self, target: tuple[Any, ...]) -> socket.socket:
        """A socket for one entry of getaddrinfo, not yet connected. Raises AddressDenied."""
        family, kind, protocol, _, address = target
        self._check(str(address[0]))
        made = self._make(family, kind, protocol)
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            if hasattr(socket, option):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        self._made.add(made)
        return made

    def open_sockets(self) -> list[socket.socket]:
        """The sockets made here that are not closed yet."""
        return [made for made in self._made if made.fileno() != -1]

    def _check(self, text: str) -> None:
        if self._deny:
            address = _plain(ip_address(text.partition("%")[0]))
            if any(address in network for network in self._deny):
                raise AddressDenied(str(address))


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address stands for, if it does."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _TRANSLATED:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address
