"""The networks of a Shoot's nodes, pods and services, which no allow-list restricts. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from hortus.domains.garden.airgap.config import Cidr
from hortus.domains.garden.extension.fields import parse_network
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.schema import FieldError
from hortus.schema.problems import invalid

_NODES: Final = "nodes"


class InsideNetworks(msgspec.Struct, frozen=True, kw_only=True):
    """The networks, as far as they can be read."""

    cidrs: tuple[Cidr, ...] = ()
    errors: tuple[FieldError, ...] = ()
    has_nodes: bool = False
    """True where a network of the nodes is known."""


def inside_networks(shoot: GardenShoot) -> InsideNetworks:
    """The networks of the spec, and those that the infrastructure reports in the status."""
    found: dict[Cidr, None] = {}
    errors: list[FieldError] = []
    has_nodes = False
    for part, path, text in _written(shoot):
        try:
            found[parse_network(text)] = None
        except ValueError as error:
            errors.append(invalid(path, text, str(error)))
        else:
            has_nodes = has_nodes or part == _NODES
    # A set of nftables has no network inside of another.
    outer = tuple(one for one in found if not any(_is_inside(one, other) for other in found))
    return InsideNetworks(cidrs=outer, errors=tuple(errors), has_nodes=has_nodes)


def _is_inside(one: Cidr, other: Cidr) -> bool:
    return one != other and one.version == other.version and one.subnet_of(other)  # type: ignore[arg-type]


def _written(shoot: GardenShoot) -> Iterator[tuple[str, str, str]]:
    """Each network with the part of the Shoot that it is of, and its path."""
    spec, status = shoot.spec.networking, shoot.status.networking
    if spec is not None:
        for part, text in ((_NODES, spec.nodes), ("pods", spec.pods), ("services", spec.services)):
            if text:
                yield part, f"spec.networking.{part}", text
    if status is not None:
        for part, texts in ((_NODES, status.nodes), ("pods", status.pods), ("services", status.services)):
            for index, text in enumerate(texts or ()):
                yield part, f"status.networking.{part}[{index}]", text
