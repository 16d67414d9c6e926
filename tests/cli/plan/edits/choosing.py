"""The changes of one fleet: all domains in turn, in each one sort after the other, all in random order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random

from tests.cli.plan.edits import agents, clusters, modules, rollouts, smaller, stacks
from tests.cli.plan.edits.shape import Choice, Edit, Seen

_PARTS = (clusters, modules, agents, stacks, rollouts, smaller)
_WEIGHTS = {"clusters": 3, "modules": 2, "agents": 2, "stacks": 2, "rollouts": 2}
"""Turns of a domain in each round, where it has more than one."""


def founding() -> list[Edit]:
    """Agents on all clusters and in the management cluster, a second stack, and a Cluster of the first."""
    return [*agents.founding(), *stacks.founding()]


def choices() -> dict[str, tuple[Choice, ...]]:
    """The sorts of changes by domain."""
    return {domain: found for part in _PARTS for domain, found in part.CHOICES.items()}


async def edits(random: Random, seen: Seen) -> AsyncIterator[Edit]:
    """Random changes without end; each is chosen when it is asked for, by the fleet as it is then."""
    known, left = choices(), dict[str, list[Choice]]()
    while True:
        turns = [domain for domain in known for _ in range(_WEIGHTS.get(domain, 1))]
        random.shuffle(turns)
        for domain in turns:
            # A sort for which the fleet has nothing now is left out; all have been tried after two shuffles.
            for _ in range(2 * len(known[domain])):
                if not left.get(domain):
                    left[domain] = random.sample(known[domain], len(known[domain]))
                found = await left[domain].pop()(random, seen)
                if found is not None:
                    yield found
                    break
