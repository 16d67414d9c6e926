"""Capabilities of machines and images: definitions, defaults, compatibility, order of preference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from hortus.schema import Fields

ARCHITECTURE: Final = "architecture"
AMD64: Final = "amd64"
ARM64: Final = "arm64"
ARCHITECTURES: Final = (AMD64, ARM64)

Capabilities = Mapping[str, Sequence[str]]
"""By name of a capability, its values."""
_T = TypeVar("_T")


class CapabilityDefinition(Fields, frozen=True):
    """A capability that a CloudProfile knows, with its values, the preferred one first."""

    name: str
    values: tuple[str, ...] = ()


def definitions_of(given: Sequence[CapabilityDefinition]) -> Sequence[CapabilityDefinition]:
    """The definitions of a CloudProfile; one that has none knows both architectures."""
    return given or (CapabilityDefinition(name=ARCHITECTURE, values=ARCHITECTURES),)


def of_machine(
    capabilities: Capabilities, definitions: Sequence[CapabilityDefinition], architecture: str = ""
) -> Capabilities:
    """The capabilities of a machine type, with an architecture: that of its pool where nothing else says one."""
    if capabilities.get(ARCHITECTURE):
        return capabilities
    known = next((one.values for one in definitions if one.name == ARCHITECTURE), ())
    return {**capabilities, ARCHITECTURE: known if len(known) == 1 else (architecture or AMD64,)}


def completed(capabilities: Capabilities, definitions: Sequence[CapabilityDefinition]) -> dict[str, tuple[str, ...]]:
    """The capabilities with all values of each that is absent."""
    return {one.name: tuple(capabilities.get(one.name) or one.values) for one in definitions}


def is_compatible(image: Capabilities, machine: Capabilities, definitions: Sequence[CapabilityDefinition]) -> bool:
    """Reports whether image and machine type share a value of every capability."""
    offered, wanted = completed(image, definitions), completed(machine, definitions)
    return all(not set(offered[name]).isdisjoint(wanted[name]) for name in offered)


def preferred(
    found: Iterable[_T], of: Callable[[_T], Capabilities], definitions: Sequence[CapabilityDefinition]
) -> list[_T]:
    """The ones that are left when values that come first in their definition are preferred."""
    left = list(found)
    for definition in definitions:
        for value in definition.values:
            if len(left) <= 1:
                return left
            having = [one for one in left if value in completed(of(one), definitions)[definition.name]]
            left = having or left
    return left
