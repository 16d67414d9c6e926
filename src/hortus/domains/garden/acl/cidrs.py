"""CIDRs: read, cleaned and merged. Pure.

Cleaning never changes the set of addresses: host bits are masked, an IPv4 network written as IPv6 becomes IPv4, and
networks that others contain or complete are merged. Where nothing is merged the order stays as it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Final

from hortus.domains.garden.extension.fields import parse_network

Cidr = IPv4Network | IPv6Network

EVERYWHERE: Final[tuple[Cidr, ...]] = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))
_MAPPED_BITS: Final = 96
"""Bits before the IPv4 address in ::ffff:0:0/96 (RFC 4291)."""
_MAPPED: Final = IPv6Network("::ffff:0:0/96")


def parse_cidr(text: str) -> tuple[Cidr, str]:
    """The network, and a sentence about what was changed in it; empty where nothing was. Raises ValueError.

    A bare address is refused, as by the Go extension.
    """
    if "/" not in text:
        raise ValueError("must have a prefix length, as 10.0.0.0/8 has")
    network = parse_network(text, strict=False)
    if not text.partition("/")[2].isdecimal():
        raise ValueError("the prefix length must be a number of bits")
    if isinstance(network, IPv6Network) and network.prefixlen >= _MAPPED_BITS and network.subnet_of(_MAPPED):
        mapped = network.network_address.ipv4_mapped
        assert mapped is not None, "the network is inside ::ffff:0:0/96"
        plain = IPv4Network((int(mapped), network.prefixlen - _MAPPED_BITS))
        return plain, f"is an IPv4 network written as IPv6; it counts as {plain}"
    address = text.partition("/")[0]
    if ip_network(address).network_address != network.network_address:
        return network, f"has host bits; it counts as {network}"
    return network, ""


def merge_cidrs(networks: Iterable[Cidr]) -> list[Cidr]:
    """The same addresses in as few networks as possible; in the order of `networks` where none is merged."""
    given = list(dict.fromkeys(networks))
    four = list(collapse_addresses(one for one in given if isinstance(one, IPv4Network)))
    six = list(collapse_addresses(one for one in given if isinstance(one, IPv6Network)))
    left: list[Cidr] = [*four, *six]
    if len(left) == len(given):
        return given

    def place(network: Cidr) -> int:
        """The place of the first network that is a part of this one."""
        return next(index for index, one in enumerate(given) if contains(network, one))

    return sorted(left, key=place)


def contains(outer: Cidr, inner: Cidr) -> bool:
    """Reports whether every address of `inner` is in `outer`."""
    if isinstance(outer, IPv4Network) and isinstance(inner, IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(outer, IPv6Network) and isinstance(inner, IPv6Network):
        return inner.subnet_of(outer)
    return False


def without(networks: Sequence[Cidr], excluded: Sequence[Cidr]) -> list[Cidr]:
    """The addresses of `networks` that are in none of `excluded`, as networks."""
    left = list(networks)
    for hole in excluded:
        left = [part for one in left for part in _cut(one, hole)]
    return merge_cidrs(left)


def _cut(network: Cidr, hole: Cidr) -> list[Cidr]:
    if contains(hole, network):
        return []
    if not contains(network, hole):
        return [network]
    if isinstance(network, IPv4Network) and isinstance(hole, IPv4Network):
        return list(network.address_exclude(hole))
    if isinstance(network, IPv6Network) and isinstance(hole, IPv6Network):
        return list(network.address_exclude(hole))
    return [network]


__all__ = ["EVERYWHERE", "Cidr", "contains", "merge_cidrs", "parse_cidr", "without"]
