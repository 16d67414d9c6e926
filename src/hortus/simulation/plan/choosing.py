"""The clusters that a plan is about: the others are taken out of the fork before anything runs in it.

A plan of some clusters of a large fleet costs what these cost, and says what would happen if they were all: shares, as
the tenth of a stage, count the chosen ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import orjson

from hortus.kube.objects import Object
from hortus.kube.selectors import LabelSelector
from hortus.simulation.fork import GARDEN, Fork
from hortus.simulation.plan.building import PROFILES, RUNTIMES, aliases_of, objects
from hortus.simulation.plan.grouping import Aliases
from hortus.simulation.plan.snapshot import ForkSnapshot

_OF_ONE: Final = frozenset(
    {
        "infrastructuremanager.kyma-project.io/runtimes",
        "infrastructuremanager.kyma-project.io/gardenerclusters",
        "operator.kyma-project.io/kymas",
        "multicluster.x-k8s.io/clusterprofiles",
        "cluster.x-k8s.io/clusters",
        "core.gardener.cloud/shoots",
    }
)
"""The kinds of which each object belongs to one cluster, whose name it has."""
_SECRETS: Final = "core/secrets"


class ClusterChoice(NamedTuple):
    """The clusters of a fork by their number."""

    chosen: int
    all: int


class _Stored(NamedTuple):
    """An object of the management cluster or the garden, with its place in the store."""

    bucket: str
    name: str
    obj: Object

    @property
    def uid(self) -> str:
        return str(self.obj["metadata"].get("uid"))

    @property
    def owners(self) -> set[str]:
        return {str(one.get("uid")) for one in self.obj["metadata"].get("ownerReferences") or ()}


async def choose(fork: Fork, labels: str) -> ClusterChoice:
    """Takes out what belongs to the clusters of which neither the Runtime nor the ClusterProfile matches `labels`.

    These are objects of the kinds `_OF_ONE` and Secrets with a kubeconfig that have the name of such a cluster, objects
    that name one in a label or their spec, and what all of them own. Others stay, whatever they are called.
    """
    fork.kubeconfigs()  # the names of clusters that have nothing else
    state = ForkSnapshot.of(fork)
    aliases = aliases_of(fork, state)
    chosen = _chosen(labels, aliases, state)
    stored = [*_stored(state)]
    found = [one for one in stored if _is_other(one, aliases, chosen)]
    taken = {one.uid for one in found}
    while found:
        for bucket in {one.bucket for one in found}:
            await fork.leave_out(bucket, [one.name for one in found if one.bucket == bucket])
        found = [one for one in stored if one.uid not in taken and one.owners & taken]
        taken |= {one.uid for one in found}
    return ClusterChoice(len(chosen), len(aliases))


def _stored(state: ForkSnapshot) -> Iterator[_Stored]:
    for bucket, records in state.buckets.items():
        if bucket.partition("/")[0] in ("root", GARDEN):
            for name, value in records.items():
                yield _Stored(bucket, name, orjson.loads(value))


def _chosen(labels: str, aliases: Aliases, state: ForkSnapshot) -> frozenset[str]:
    selector = LabelSelector.parse(labels)
    return frozenset(
        aliases.about("root", obj)
        for bucket in (RUNTIMES, PROFILES)
        for obj in objects(bucket, [state])
        if selector.matches(obj["metadata"].get("labels"))
    )


def _is_other(one: _Stored, aliases: Aliases, chosen: frozenset[str]) -> bool:
    about = aliases.labeled(one.obj)
    name, suffix = one.obj["metadata"]["name"], one.bucket.partition("/")[2]
    if not about and suffix in _OF_ONE:
        about = aliases.named(name)
    if not about and suffix == _SECRETS:
        about = aliases.named(name.removeprefix("kubeconfig-").removesuffix("-kubeconfig"))
    about = about or aliases.named(_cluster_in(one.obj.get("spec")))
    return bool(about) and about not in chosen


def _cluster_in(spec: object) -> str:
    """The cluster that a spec refers to, as that of an AgentPlacement or ClusterAddon does; empty for none."""
    if not isinstance(spec, dict):
        return ""
    reference = spec.get("clusterRef")
    found = reference.get("name") if isinstance(reference, dict) else spec.get("cluster")
    return found if isinstance(found, str) else ""
