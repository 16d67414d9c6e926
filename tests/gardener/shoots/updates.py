"""Random updates of Shoots: a Shoot that a garden holds, and what a client makes of it.

What a garden holds may have a status, which an update takes over. Faults of creations are drawn for updates too.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Final, NamedTuple

from tests.gardener.shoots.bases import base
from tests.gardener.shoots.generator import FAMILIES, FAULTS, some
from tests.gardener.shoots.mutations import Choice, Drawing, Family, drawn, places, put
from tests.gardener.shoots.updated import FIELDS, POOLS, SELF_HOSTED, STATES, STATUS, VARIANTS, WORKERLESS, Update

from hortus.kube.objects import Object

_FAULTS_OF_ONE: Final = (0, 0, 1, 1, 1, 1, 1, 3, 5, 8)
_OF_CREATIONS: Final = (0, 0, 0, 1, 3)


@dataclass(frozen=True)
class UpdateMutation:
    name: str
    family: Family
    update: Update
    subresource: str = ""
    is_fault: bool = True

    @cached_property
    def places(self) -> frozenset[str]:
        changes = self.update.changes
        tables = changes.values if isinstance(changes, Choice) else (changes,)
        return frozenset().union(*map(places, (self.update.before, *tables)))

    @property
    def versions(self) -> None:
        return None

    def apply(self, held: Object, sent: Object, random: Random) -> None:
        for path, value in self.update.before.items():
            chosen = drawn(value, random)
            put(held, path, chosen)
            put(sent, path, copy.deepcopy(chosen))
        for path, value in drawn(self.update.changes, random).items():
            put(sent, path, value)


class DrawnUpdate(NamedTuple):
    """A Shoot as a garden holds it, as it is sent, to which subresource, and the names of the changes."""

    held: Object
    sent: Object
    subresource: str
    names: tuple[str, ...]


UPDATES: Final[tuple[UpdateMutation, ...]] = (
    *(UpdateMutation(f"update-{name}", Family.ANY, each) for name, each in {**FIELDS, **STATES}.items()),
    *(UpdateMutation(f"update-{name}", Family.WORKERS, each) for name, each in POOLS.items()),
    *(UpdateMutation(f"update-workerless-{name}", Family.WORKERLESS, each) for name, each in WORKERLESS.items()),
    *(UpdateMutation(f"update-self-hosted-{name}", Family.SELF_HOSTED, each) for name, each in SELF_HOSTED.items()),
    *(UpdateMutation(f"status-{name}", Family.ANY, each, "status") for name, each in STATUS.items()),
    *(UpdateMutation(f"update-to-{name}", Family.WORKERS, each, is_fault=False) for name, each in VARIANTS.items()),
)
_BY_PLACE: Final = {place: tuple(each for each in UPDATES if each.subresource == place) for place in ("", "status")}


def updates(seed: int, count: int) -> Iterator[DrawnUpdate]:
    """As many random updates; the same for the same seed."""
    random, times = Random(seed), Counter[str]()
    for _ in range(count):
        yield _drawn(random, times)


def _drawn(random: Random, times: Counter[str]) -> DrawnUpdate:
    family = random.choices([*FAMILIES], [*FAMILIES.values()])[0]
    place = "status" if random.random() < 0.2 else ""
    held = base(family, random)
    sent = copy.deepcopy(held)
    drawing = Drawing()
    chosen = some(_BY_PLACE[place], family, random.choice(_FAULTS_OF_ONE), random, drawing, times)
    for mutation in chosen:
        mutation.apply(held, sent, random)
    faults = some(FAULTS, family, random.choice(_OF_CREATIONS), random, drawing, times) if place == "" else []
    for fault in faults:
        fault.apply(sent, random)
    return DrawnUpdate(held, sent, place, tuple(mutation.name for mutation in (*chosen, *faults)))
