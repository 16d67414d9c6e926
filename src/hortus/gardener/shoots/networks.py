"""Rules of the networks of a Shoot.

Source: gardener/gardener, pkg/api/core/validation, validateNetworking.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from hortus.gardener.shoots.components import WORKERLESS
from hortus.gardener.shoots.facts import RuleFacts
from hortus.kube import Object, naming
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, forbidden, invalid, not_supported, required

FAMILIES: Final = ("IPv4", "IPv6")
RANGES: Final = ("nodes", "pods", "services")
_LABEL = "networking.extensions.gardener.cloud/"


def network_problems(networking: Object | None, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    if networking is None:
        if not facts.workerless:
            yield required(path, "networking should not be nil for a Shoot with workers")
        return
    if facts.workerless:
        for name in ("type", "providerConfig", "pods", "nodes"):
            if networking.get(name) is not None:
                yield forbidden(f"{path}.{name}", WORKERLESS)
    else:
        yield from _type_problems(networking.get("type") or "", f"{path}.type")
    families = networking.get("ipFamilies") or ()
    if problems := list(_family_problems(families, f"{path}.ipFamilies")):
        # Without the families nobody knows which addresses the ranges may have.
        yield from problems
        return
    for name in RANGES:
        if (text := networking.get(name)) is not None:
            yield from _range_problems(text, families, f"{path}.{name}")


def _type_problems(kind: str, path: str) -> Iterator[FieldError]:
    if not kind:
        yield required(path, "networking type must be provided")
    elif naming.qualified_name(f"{_LABEL}{kind}"):
        yield invalid(path, kind, "type must be a valid label name")


def _family_problems(families: Sequence[str], path: str) -> Iterator[FieldError]:
    for index, family in enumerate(families):
        if family not in FAMILIES:
            yield not_supported(f"{path}[{index}]", family, FAMILIES)
        if family in families[:index]:
            yield duplicate(f"{path}[{index}]", family)


def _range_problems(text: str, families: Sequence[str], path: str) -> Iterator[FieldError]:
    network = network_of(text)
    if network is None:
        yield invalid(path, text, f"invalid CIDR address: {text}")
        return
    family = families[0] if families else "IPv4"
    # A range of a network with both families may have either.
    if len(families) < 2 and family != f"IPv{network.version}":
        yield invalid(path, str(network.network_address), f"must be a valid {family} address")
    if ip_address(text.partition("/")[0]) != network.network_address:
        yield invalid(path, text, "must be valid canonical CIDR")


@functools.lru_cache(maxsize=1024)
def network_of(text: str) -> IPv4Network | IPv6Network | None:
    """A range such as `10.250.0.0/16`, its first address or not; None for a text that is none."""
    address, slash, length = text.partition("/")
    if not slash or not (length.isascii() and length.isdecimal()) or "%" in address:
        return None
    try:
        return ip_network(f"{address}/{int(length[:4])}", strict=False)
    except ValueError:
        return None
