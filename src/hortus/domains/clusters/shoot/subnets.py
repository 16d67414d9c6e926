"""The nodes' network, cut into a subnet, or three, for each zone (docs/clusters/shoot.md).

A zone's place in the list decides its slot and nothing else does, so a zone that is added moves none of the others.
Clusters live in these numbers: they are the Go system's, and changing one would tear a cluster's network down.

Both layouts begin with K, three bits longer than the nodes' prefix, so there are eight blocks of /K:

- `triple` (AWS, Alibaba Cloud). Zones 1 to 3 take two blocks each: one for the workers, half of the other for public,
  half for internal load balancers. Zones 4 to 8 share the last two blocks, in pieces of /K+3, three to a zone. Alibaba
  Cloud gets the workers' subnets alone, at the same places.
- `single` (Azure). One block for each zone.
"""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Final, NamedTuple

MOST_ZONES: Final = 8
SHORTEST_PREFIX: Final = 16
LONGEST_PREFIX: Final = 24
WIDE_SLOTS: Final = 3
"""The zones of `triple` that get whole blocks."""


class Triple(NamedTuple):
    """The subnets of one zone on AWS."""

    workers: IPv4Network
    public: IPv4Network
    internal: IPv4Network


def triple(nodes: IPv4Network, slot: int) -> Triple:
    """The subnets of the zone at `slot`, from 0. Raises ValueError for a slot or network out of bounds."""
    _check(nodes, slot)
    block = nodes.prefixlen + 3
    half = 1 << (31 - block)
    base = int(nodes.network_address)
    if slot < WIDE_SLOTS:
        start = base + slot * 4 * half
        return Triple(
            IPv4Network((start, block)),
            IPv4Network((start + 2 * half, block + 1)),
            IPv4Network((start + 3 * half, block + 1)),
        )
    piece = half // 4
    start = base + WIDE_SLOTS * 4 * half + (slot - WIDE_SLOTS) * 3 * piece
    workers, public, internal = (IPv4Network((start + index * piece, block + 3)) for index in range(3))
    return Triple(workers, public, internal)


def single(nodes: IPv4Network, slot: int) -> IPv4Network:
    """The subnet of the zone at `slot`, from 0. Raises ValueError for a slot or network out of bounds."""
    _check(nodes, slot)
    block = nodes.prefixlen + 3
    return IPv4Network((int(nodes.network_address) + (slot << (32 - block)), block))


def _check(nodes: IPv4Network, slot: int) -> None:
    if not SHORTEST_PREFIX <= nodes.prefixlen <= LONGEST_PREFIX:
        raise ValueError(f"CIDR prefix length must be between {SHORTEST_PREFIX} and {LONGEST_PREFIX}")
    if not 0 <= slot < MOST_ZONES:
        raise ValueError(f"Number of networking zones must be between 1 and {MOST_ZONES}")
