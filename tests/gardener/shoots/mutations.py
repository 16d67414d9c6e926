"""Named changes of a Shoot: each is a table of paths and of what is written there."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from itertools import pairwise
from random import Random
from typing import Any, Final, NamedTuple, Protocol

from hortus.kube.objects import Object


class Family(StrEnum):
    """The sort of Shoot that a mutation is made for."""

    ANY = "any"
    WORKERS = "workers"
    WORKERLESS = "workerless"
    SELF_HOSTED = "self-hosted"


class Choice(NamedTuple):
    """One of these values is drawn."""

    values: tuple[Any, ...]


class Gone(NamedTuple):
    """The field is taken away."""


GONE: Final = Gone()
FROM_134: Final = ("1.34.1", "1.35.0", "1.36.0")
FROM_135: Final = ("1.35.0", "1.36.0")
UNTIL_133: Final = ("1.32.9", "1.33.5")
UNTIL_134: Final = ("1.32.9", "1.33.5", "1.34.1")
SHORT: Final = {
    "w": "spec/provider/workers/0",
    "k": "spec/kubernetes",
    "a": "spec/kubernetes/kubeAPIServer",
    "s": "spec",
    "m": "metadata",
}
"""First parts of paths, as the tables write them."""

VERSION: Final = "k/version"

Changes = Mapping[str, Any]


@dataclass(frozen=True)
class Mutation:
    name: str
    family: Family
    changes: Changes
    is_fault: bool

    def apply(self, shoot: Object, random: Random) -> None:
        for path, value in self.changes.items():
            put(shoot, path, drawn(value, random))

    @cached_property
    def places(self) -> frozenset[str]:
        """All fields that the changes write, but for the version."""
        return places(self.changes) - {VERSION}

    @cached_property
    def versions(self) -> frozenset[Any] | None:
        """The versions of Kubernetes that the changes are made for, None where it is any."""
        value = self.changes.get(VERSION)
        return None if value is None else frozenset(value.values if isinstance(value, Choice) else (value,))


class Drawable(Protocol):
    """One of the mutations that are drawn from."""

    @property
    def name(self) -> str: ...

    @property
    def family(self) -> Family: ...

    @property
    def places(self) -> frozenset[str]: ...

    @property
    def versions(self) -> frozenset[Any] | None: ...


class Drawing:
    """Mutations of one Shoot of which none undoes another: no two write one field, and one version fits them all."""

    def __init__(self) -> None:
        self._places: set[str] = set()
        self._above: set[str] = set()
        self._versions: frozenset[Any] | None = None

    def takes(self, mutation: Drawable) -> bool:
        """Returns True if the mutation fits, and keeps its fields from then on."""
        versions = mutation.versions
        if versions is not None and self._versions is not None:
            versions &= self._versions
        above = {parent for place in mutation.places for parent in _parents(place)}
        if versions == frozenset() or not self._places.isdisjoint(mutation.places | above):
            return False
        if not self._above.isdisjoint(mutation.places):
            return False
        self._places |= mutation.places
        self._above |= above
        self._versions = self._versions if versions is None else versions
        return True

    def version(self, random: Random) -> Any:
        """A version that fits all, None where any does."""
        return None if self._versions is None else random.choice(sorted(self._versions, key=str))


def places(changes: Changes) -> frozenset[str]:
    """The fields that changes write."""
    return frozenset(place for path, value in changes.items() for place in _places(path, value))


@cache
def _parents(place: str) -> tuple[str, ...]:
    parts = place.split("/")
    return tuple("/".join(parts[:length]) for length in range(1, len(parts)))


def _places(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _places(f"{path}/{'*' if isinstance(key, Choice) else key}", item)
    else:
        yield path.removesuffix("/*")


def one(*values: Any) -> Choice:
    return Choice(values)


def faults(family: Family, table: Mapping[str, Changes], prefix: str = "") -> Iterator[Mutation]:
    """Mutations that Gardener refuses, at least in the versions that they set."""
    for name, changes in table.items():
        yield Mutation(prefix + name, family, changes, is_fault=True)


def variants(family: Family, table: Mapping[str, Changes], prefix: str = "") -> Iterator[Mutation]:
    """Mutations that are valid by themselves."""
    for name, changes in table.items():
        yield Mutation(prefix + name, family, changes, is_fault=False)


def below(place: str, table: Mapping[str, Changes]) -> dict[str, Changes]:
    """The table for another place: paths that begin with `@/` are meant there."""
    return {
        name: {path.replace("@", place, 1) if path.startswith("@") else path: value for path, value in changes.items()}
        for name, changes in table.items()
    }


def drawn(value: Any, random: Random) -> Any:
    """The value with each choice made, in all its depth."""
    match value:
        case Choice():
            return drawn(random.choice(value.values), random)
        case dict():
            return {drawn(key, random): drawn(item, random) for key, item in value.items()}
        case list():
            return [drawn(item, random) for item in value]
        case _:
            return copy.copy(value)


def put(shoot: Object, path: str, value: Any) -> None:
    """Writes the value, with what is missing above it. A number is the place in a list, `+` a further entry of one;
    `|` stands for a slash in the key of a map. A mapping is merged into one that is there."""
    head, _, rest = path.partition("/")
    parts = [part.replace("|", "/") for part in f"{SHORT.get(head, head)}/{rest}".strip("/").split("/")]
    place: Any = shoot
    for part, following in pairwise(parts):
        place = _below(place, part, [] if following.isdigit() or following == "+" else {})
        if not isinstance(place, dict | list):
            return
    _write(place, parts[-1], value)


def _below(place: Any, part: str, empty: Any) -> Any:
    if isinstance(place, list):
        if part == "+":
            place.append(empty)
            return empty
        return place[int(part)] if part.isdigit() and int(part) < len(place) else None
    if place.get(part) is None:
        place[part] = empty
    return place[part]


def _write(place: Any, part: str, value: Any) -> None:
    if isinstance(place, list):
        if part == "+":
            place.append(value)
        elif part.isdigit() and int(part) < len(place):
            place[int(part)] = value
    elif isinstance(value, Gone):
        place.pop(part, None)
    elif isinstance(value, dict):
        before = place.get(part)
        merged = {**before, **value} if isinstance(before, dict) else value
        place[part] = _whole(merged)
    else:
        place[part] = value


def _whole(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _whole(item) for key, item in value.items() if not isinstance(item, Gone)}
