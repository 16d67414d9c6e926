"""The cluster that a change is about, and groups of clusters that have the same changes.

An object of the management cluster or the garden is about a cluster when its name, or a label of it, names one. Within
a group the cluster's own names, random parts of names, checksums and identities are left open: two clusters are equal
when nothing else differs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from hortus.simulation.plan.model import ClusterGroup, ClusterPlan, FieldChange, ObjectChange

OWN: Final = "CLUSTER"
_LABELS: Final = (
    "kyma-project.io/runtime-id",
    "kyma-project.io/shoot-name",
    "operator.kyma-project.io/kyma-name",
    "cluster.x-k8s.io/cluster-name",
)
_SEPARATOR: Final = re.compile(r"([-.])")
_RANDOM: Final = re.compile(r"(?<![0-9a-zA-Z])(?=[0-9a-f]*\d)[0-9a-f]{5,}(?![0-9a-zA-Z])")
_SUFFIX: Final = re.compile(r"(?<=\*-)[0-9a-z]{5}(?![0-9a-zA-Z])")
"""A random suffix after another random part, as Pods and Nodes have it; it may be of letters alone."""
_IDENTITY: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_ADDRESS: Final = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")


class Aliases:
    """The names of each cluster: that of its Runtime, of its Shoot, and its technical ID."""

    def __init__(self) -> None:
        self._cluster: dict[str, str] = {}
        self._of: dict[str, list[str]] = {}

    def add(self, cluster: str, *names: str) -> None:
        """Makes names of a cluster known; the first cluster of a name counts."""
        for name in (cluster, *names):
            if name and self._cluster.setdefault(name, cluster) == cluster:
                known = self._of.setdefault(cluster, [])
                if name not in known:
                    known.append(name)

    def __contains__(self, name: object) -> bool:
        return name in self._cluster

    def __len__(self) -> int:
        return len(self._of)

    def find(self, name: str) -> str:
        """The cluster of that name, or of the longest name that is a part of it; empty for none."""
        if (found := self._cluster.get(name)) is not None:
            return found
        parts = _SEPARATOR.split(name)  # every other one is a separator
        for length in range(len(parts) - 2, 0, -2):
            for start in range(0, len(parts) - length + 1, 2):
                if (found := self._cluster.get("".join(parts[start : start + length]))) is not None:
                    return found
        return ""

    def about(self, where: str, obj: Mapping[str, Any]) -> str:
        """The cluster that an object is about; empty for none."""
        if where not in ("root", "garden"):
            return self._cluster.get(where, where)
        return self.labeled(obj) or self.find(obj["metadata"]["name"])

    def labeled(self, obj: Mapping[str, Any]) -> str:
        """The cluster that a label of the object names; empty for none."""
        labels = obj["metadata"].get("labels") or {}
        found = (self._cluster.get(labels.get(label, "")) for label in _LABELS)
        return next((one for one in found if one is not None), "")

    def named(self, name: str) -> str:
        """The cluster of exactly that name; empty for none."""
        return self._cluster.get(name, "")

    def called(self, where: str) -> str:
        """The name of the cluster of an API server; root and garden are called so."""
        return where if where in ("root", "garden") else self.about(where, {})

    def pattern(self, cluster: str) -> re.Pattern[str]:
        """Matches the cluster's names in texts."""
        names = sorted(self._of.get(cluster, [cluster]), key=len, reverse=True)
        return re.compile(rf"(?<![0-9a-zA-Z])(?:{'|'.join(map(re.escape, names))})(?![0-9a-zA-Z])")


def groups(clusters: Iterable[ClusterPlan], aliases: Aliases) -> tuple[ClusterGroup, ...]:
    """The clusters that change, in groups of equal ones, the largest first."""
    found: dict[tuple[tuple[ObjectChange, int], ...], list[ClusterPlan]] = {}
    for one in clusters:
        if one.changes:
            pattern = aliases.pattern(one.name)
            counted = Counter(_open(change, pattern) for change in map(_hashable, one.changes))
            key = tuple(sorted(counted.items(), key=lambda item: _order(item[0])))
            found.setdefault(key, []).append(one)
    made = [_group(key, members) for key, members in found.items()]
    return tuple(sorted(made, key=lambda group: (-group.count, group.clusters)))


def _group(key: Sequence[tuple[ObjectChange, int]], members: Sequence[ClusterPlan]) -> ClusterGroup:
    times = [one.seconds for one in members]
    return ClusterGroup(
        clusters=tuple(one.name for one in members),
        changes=tuple(change for change, _ in key),
        counts=tuple(count for _, count in key),
        seconds=(min(times), max(times)),
    )


def _order(change: ObjectChange) -> tuple[Any, ...]:
    return (change.where, change.kind, change.namespace, change.name, change.action, str(change.fields))


def _open(change: ObjectChange, own: re.Pattern[str]) -> ObjectChange:
    """The change with everything left open in which equal clusters differ."""

    def text(value: str) -> str:
        return str(opened_text(own.sub(OWN, value)))

    def opened(value: Any) -> Any:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, tuple):
            return tuple(opened(one) for one in value)
        return value

    return ObjectChange(
        where=change.where if change.where in ("root", "garden") else OWN,
        group=change.group,
        kind=change.kind,
        namespace=text(change.namespace),
        name=text(change.name),
        action=change.action,
        fields=tuple(FieldChange(text(one.path), opened(one.before), opened(one.after)) for one in change.fields),
        rolls=change.rolls,
        data=change.data,
    )


def opened_text(value: Any) -> Any:
    """A text without its times, addresses, and random or computed parts; any other value as it is."""
    if isinstance(value, str):
        for pattern in (_TIME, _ADDRESS, _IDENTITY, _RANDOM, _SUFFIX):
            value = pattern.sub("*", value)
    return value


def _hashable(change: ObjectChange) -> ObjectChange:
    return ObjectChange(
        **{
            **{name: getattr(change, name) for name in change.__struct_fields__},
            "fields": tuple(FieldChange(one.path, _frozen(one.before), _frozen(one.after)) for one in change.fields),
        }
    )


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple((key, _frozen(one)) for key, one in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    return value


def counted(group: ClusterGroup) -> Iterator[tuple[ObjectChange, int]]:
    """The changes of a group with the number of equal ones."""
    return zip(group.changes, group.counts, strict=True)
