"""Named changes of a Shoot: each is a table of paths and of what is written there."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import pairwise
from random import Random
from typing import Any, Final, NamedTuple

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

Changes = Mapping[str, Any]


class Mutation(NamedTuple):
    name: str
    family: Family
    changes: Changes
    is_fault: bool

    def apply(self, shoot: Object, random: Random) -> None:
        for path, value in self.changes.items():
            put(shoot, path, drawn(value, random))


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
