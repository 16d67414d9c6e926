"""Random Shoots for comparisons with Gardener: a valid one, and named changes of it.

Each named fault is drawn about as often as each other one, on a Shoot of the family that it is made for. Many Shoots
have one fault alone, so that a rule is seen by itself; others have dozens, so that few Shoots meet each rule often.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple

from tests.gardener.shoots import apiserver, components, kubelet, metadata, networking, settings, special, workers
from tests.gardener.shoots.bases import base
from tests.gardener.shoots.mutations import Family, Mutation

from hortus.kube.objects import Object

MUTATIONS: Final[tuple[Mutation, ...]] = tuple(
    mutation
    for module in (apiserver, components, kubelet, metadata, networking, settings, special, workers)
    for mutation in module.mutations()
)
FAULTS: Final = tuple(mutation for mutation in MUTATIONS if mutation.is_fault)
VARIANTS: Final = tuple(mutation for mutation in MUTATIONS if not mutation.is_fault)
_FAMILIES: Final = {Family.WORKERS: 0.72, Family.SELF_HOSTED: 0.14, Family.WORKERLESS: 0.14}
_FAULTS_OF_ONE: Final = (0, 0, 1, 1, 1, 1, 1, 3, 8, 18, 32, 48)
"""Numbers of faults that are drawn, each as often as it stands here."""


class Drawn(NamedTuple):
    """A Shoot, and the names of its changes."""

    shoot: Object
    names: tuple[str, ...]


def shoots(seed: int, count: int) -> Iterator[Drawn]:
    """As many random Shoots; the same for the same seed."""
    random = Random(seed)
    for _ in range(count):
        yield _drawn(random)


def _drawn(random: Random) -> Drawn:
    family = random.choices([*_FAMILIES], [*_FAMILIES.values()])[0]
    number = random.choice(_FAULTS_OF_ONE)
    chosen = _some(VARIANTS, family, random.choice([0, 1, 2]), random) + _some(FAULTS, family, number, random)
    # Many others set a version that their rule needs.
    chosen.sort(key=lambda mutation: mutation.name.startswith("version-"))
    shoot = base(family, random)
    for mutation in chosen:
        mutation.apply(shoot, random)
    return Drawn(shoot, tuple(mutation.name for mutation in chosen))


def _some(of: tuple[Mutation, ...], family: Family, number: int, random: Random) -> list[Mutation]:
    """So many of those that fit: of a rare family up to a third of them its own."""
    own = [mutation for mutation in of if mutation.family is family]
    # The control plane in a pool changes nothing of the rules for pools.
    others = {Family.ANY} | ({Family.WORKERS} if family is Family.SELF_HOSTED else set())
    shared = [mutation for mutation in of if mutation.family in others]
    if family is Family.WORKERS:
        return random.sample(own + shared, number)
    special = min(number, len(own), random.randint(0, 1) + -(-number // 3))
    return random.sample(own, special) + random.sample(shared, number - special)
