"""Random Shoots for comparisons with Gardener: a valid one, and named changes of it.

Each named fault is drawn about as often as each other one, on a Shoot of the family that it is made for. Many Shoots
have one fault alone, so that a rule is seen by itself; others have dozens, so that few Shoots meet each rule often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Final, NamedTuple, TypeVar

from tests.gardener.shoots import apiserver, components, kubelet, metadata, networking, settings, special, workers
from tests.gardener.shoots.bases import base
from tests.gardener.shoots.mutations import VERSION, Drawable, Drawing, Family, Mutation, put

from hortus.kube.objects import Object

MUTATIONS: Final[tuple[Mutation, ...]] = tuple(
    mutation
    for module in (apiserver, components, kubelet, metadata, networking, settings, special, workers)
    for mutation in module.mutations()
)
FAULTS: Final = tuple(mutation for mutation in MUTATIONS if mutation.is_fault)
VARIANTS: Final = tuple(mutation for mutation in MUTATIONS if not mutation.is_fault)
FAMILIES: Final = {Family.WORKERS: 0.66, Family.SELF_HOSTED: 0.22, Family.WORKERLESS: 0.12}
_FAULTS_OF_ONE: Final = (0, 0, 1, 1, 1, 1, 1, 3, 8, 18, 32, 48)
"""Numbers of faults that are drawn, each as often as it stands here."""
_SPREAD: Final = 12
"""A mutation that was drawn so many times more often may still come before another."""


class Drawn(NamedTuple):
    """A Shoot, and the names of its changes."""

    shoot: Object
    names: tuple[str, ...]


def shoots(seed: int, count: int) -> Iterator[Drawn]:
    """As many random Shoots; the same for the same seed."""
    random, times = Random(seed), Counter[str]()
    for _ in range(count):
        yield _drawn(random, times)


def _drawn(random: Random, times: Counter[str]) -> Drawn:
    family = random.choices([*FAMILIES], [*FAMILIES.values()])[0]
    drawing = Drawing()
    faults = some(FAULTS, family, random.choice(_FAULTS_OF_ONE), random, drawing, times)
    chosen = some(VARIANTS, family, random.choice([0, 1, 2]), random, drawing, times) + faults
    shoot = base(family, random)
    for mutation in chosen:
        mutation.apply(shoot, random)
    if (version := drawing.version(random)) is not None:
        put(shoot, VERSION, version)
    return Drawn(shoot, tuple(mutation.name for mutation in chosen))


_M = TypeVar("_M", bound=Drawable)


def some(
    of: Sequence[_M], family: Family, number: int, random: Random, drawing: Drawing, times: Counter[str]
) -> list[_M]:
    """So many that fit the family and one another; those first that were drawn seldom, so that all are drawn alike."""
    # The control plane in a pool changes nothing of the rules for pools.
    families = {Family.ANY, family} | ({Family.WORKERS} if family is Family.SELF_HOSTED else set())
    fitting = [mutation for mutation in of if number and mutation.family in families]
    random.shuffle(fitting)
    if number > 1:
        fitting.sort(key=lambda mutation: times[mutation.name] // _SPREAD)
    found: list[_M] = []
    for mutation in fitting:
        if len(found) >= number:
            break
        if drawing.takes(mutation):
            found.append(mutation)
    times.update(mutation.name for mutation in found)
    return found
