"""The clusters that a plan is about: the others are taken out of the fork before anything runs in it.

A plan of some clusters of a large fleet costs what these cost, and says what would happen if they were all: shares, as
the tenth of a stage, count the chosen ones.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

from hortus.kube.selectors import LabelSelector
from hortus.simulation.fork import GARDEN, Fork
from hortus.simulation.plan.building import PROFILES, RUNTIMES, aliases_of, objects
from hortus.simulation.plan.grouping import Aliases
from hortus.simulation.plan.snapshot import ForkSnapshot


class ClusterChoice(NamedTuple):
    """The clusters of a fork by their number."""

    chosen: int
    all: int


async def choose(fork: Fork, labels: str) -> ClusterChoice:
    """Takes out what is about the clusters of which neither the Runtime nor the ClusterProfile matches `labels`.

    Objects without a namespace stay: their names are no names of clusters.
    """
    fork.kubeconfigs()  # the names of clusters that have nothing else
    state = ForkSnapshot.of(fork)
    aliases = aliases_of(fork, state)
    chosen = _chosen(labels, aliases, state)
    for bucket, records in state.buckets.items():
        where = bucket.partition("/")[0]
        if where in ("root", GARDEN):
            await fork.leave_out(bucket, [name for name, value in records.items() if _is_other(value, aliases, chosen)])
    return ClusterChoice(len(chosen), len(aliases))


def _chosen(labels: str, aliases: Aliases, state: ForkSnapshot) -> frozenset[str]:
    selector = LabelSelector.parse(labels)
    return frozenset(
        aliases.about("root", obj)
        for bucket in (RUNTIMES, PROFILES)
        for obj in objects(bucket, [state])
        if selector.matches(obj["metadata"].get("labels"))
    )


def _is_other(value: bytes, aliases: Aliases, chosen: frozenset[str]) -> bool:
    obj = orjson.loads(value)
    if not obj["metadata"].get("namespace"):
        return False
    about = aliases.about("root", obj)
    return bool(about) and about not in chosen
