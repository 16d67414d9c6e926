"""A report of connections that an access list turns away, or would, from the access log of a gateway. Pure.

Lines are in Istio's JSON format or in its default text format
(https://istio.io/latest/docs/tasks/observability/logs/access-log/). Each is judged by the rules that are given, so that
a list can be tried before it is set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple

import msgspec

from hortus.domains.garden.acl.cidrs import Cidr
from hortus.domains.garden.acl.config import ALLOW, DENY, AccessList
from hortus.kube.shapes import decode_json

Address = IPv4Address | IPv6Address

_TEXT: Final = re.compile(
    r"^\[(?P<time>[^\]]+)\].*"
    r'"[^"]*" (?P<cluster>\S+) \S+ \S+ (?P<remote>\S+) (?P<host>\S+) \S+$'
)
"""The time, and the end of Istio's text format from the cluster on, without the addresses of the gateway's own ends."""


class _Line(msgspec.Struct):
    """The fields of a JSON line that are read."""

    downstream_remote_address: str = ""
    requested_server_name: str | None = None
    upstream_cluster: str | None = None
    start_time: str = ""


class GatewayConnection(NamedTuple):
    """One connection of a log."""

    source: Address
    host: str
    """Name that was asked for; empty on ports without TLS."""
    destination: str
    """Cluster that it was sent to, which names the Shoot on ports without a host."""
    time: str


class BlockedSource(NamedTuple):
    """The connections of one address that the rules turn away."""

    source: Address
    number: int
    first: str
    last: str
    hosts: tuple[str, ...]


def connections(lines: Iterable[str]) -> Iterator[GatewayConnection | None]:
    """The connections of a log; None for a line that is none."""
    for line in lines:
        text = line.strip()
        if text:
            yield _of_json(text) if text.startswith("{") else _of_text(text)


def of_shoot(found: GatewayConnection, *, technical_id: str, short_id: str, hosts: Iterable[str]) -> bool:
    """Reports whether a connection was meant for a Shoot."""
    if found.host:
        return found.host in hosts or f"-{short_id}." in found.host
    return f".{technical_id}." in found.destination or found.destination.startswith(f"{technical_id}--")


def lets_in(access: AccessList, always: Iterable[Cidr], source: Address) -> bool:
    """The judgement that the filters make: always allowed, or allowed and not denied."""
    if any(source in one for one in always):
        return True
    allowed = [cidr for rule in access.rules if rule.action == ALLOW for cidr in rule.cidrs]
    denied = any(source in cidr for rule in access.rules if rule.action == DENY for cidr in rule.cidrs)
    return not denied and (not allowed or any(source in cidr for cidr in allowed))


def blocked(access: AccessList, always: Iterable[Cidr], found: Iterable[GatewayConnection]) -> list[BlockedSource]:
    """The addresses that are turned away, the most frequent first."""
    networks, by_source = tuple(always), dict[Address, list[GatewayConnection]]()
    for one in found:
        if not lets_in(access, networks, one.source):
            by_source.setdefault(one.source, []).append(one)
    rows = [_row(source, those) for source, those in by_source.items()]
    return sorted(rows, key=lambda row: (-row.number, str(row.source)))


def _row(source: Address, those: list[GatewayConnection]) -> BlockedSource:
    times = sorted(one.time for one in those)
    places = sorted({one.host or one.destination for one in those} - {""})
    return BlockedSource(source, len(those), times[0], times[-1], tuple(places))


def _of_json(text: str) -> GatewayConnection | None:
    try:
        found = decode_json(text, _Line)
    except msgspec.MsgspecError:
        return None
    source = _address(found.downstream_remote_address)
    if source is None:
        return None
    host, destination = _word(found.requested_server_name), _word(found.upstream_cluster)
    return GatewayConnection(source, host, destination, found.start_time)


def _of_text(text: str) -> GatewayConnection | None:
    match = _TEXT.match(text)
    if match is None:
        return None
    time, destination, remote, host = match.groups()
    source = _address(remote)
    return None if source is None else GatewayConnection(source, _word(host), _word(destination), time)


def _word(value: str | None) -> str:
    return "" if value in (None, "-") else str(value)


def _address(text: str) -> Address | None:
    """The address in `1.2.3.4:5678` or `[2001:db8::1]:5678`."""
    host = text[1:].partition("]")[0] if text.startswith("[") else text.rpartition(":")[0]
    try:
        return ip_address(host)
    except ValueError:
        return None
