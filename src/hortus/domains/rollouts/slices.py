"""The record of a rollout: PlacementDecision slices, to which admitted clusters are appended.

Two slices have room. Clusters are appended to the one that was written longer ago, under its resourceVersion, or to the
next slice, whose name follows from its number, while fewer have room. A writer that has not seen every admission so far
meets a conflict; see docs/adr/0013-rollouts.md. No slice is written more than once a second.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from hortus.domains.rollouts.decisions import AdmittedCluster
from hortus.engine import Cache, by_owner_uid, read
from hortus.engine.cache import number_of
from hortus.engine.rollouts.types import (
    PLACEMENT_DECISIONS,
    ROLLOUTS,
    ClusterDecision,
    ClusterProfileRef,
    Label,
    PlacementDecision,
    Rollout,
)
from hortus.kube import Client, PatchKind
from hortus.kube.clock import Clock
from hortus.kube.errors import AlreadyExists, Conflict, NotFound
from hortus.kube.objects import Object, ObjectKey, format_time, parse_time
from hortus.schema import ObjectMeta, OwnerReference, encode

CAPACITY: Final = 100
"""Clusters in a slice; the CRD's limit (kubernetes-sigs/cluster-inventory-api, PlacementDecision)."""
OPEN: Final = 2
"""Slices that have room: while one has its second, clusters are appended to the other."""
PERIOD: Final = 1.0
"""Seconds between two writes of a slice."""
SCHEDULER: Final = "hortus"
_REASON = re.compile(r"admitted (\S+) in stage (\S+)")
_BY_OWNER = "owner"


class RecordConflict(Exception):
    """Somebody else appended to the record since it was read: read it again and decide again."""


class SliceRecord:
    """The slices of all rollouts of one namespace.

    Rollouts are named by uid: the slices of a deleted one stay for a moment, and are none of its namesake's.
    """

    def __init__(self, client: Client, cache: Cache, *, field_manager: str, clock: Clock) -> None:
        self._client = client
        self._cache = cache
        self._field_manager = field_manager
        self._clock = clock
        self._written: dict[str, float] = {}
        """When this process last wrote a slice, on the monotonic clock, for those that it wrote lately."""
        self._parsed: dict[ObjectKey, tuple[Object, tuple[AdmittedCluster, ...]]] = {}
        cache.add_index(_BY_OWNER, by_owner_uid)

    def admitted(self, uid: str) -> dict[str, AdmittedCluster]:
        """The clusters that were admitted, by name, as far as the cache knows."""
        keys = self._cache.keys_by(_BY_OWNER, uid)
        return {one.cluster: one for key in keys for one in self._entries(key)}

    def _entries(self, key: ObjectKey) -> tuple[AdmittedCluster, ...]:
        """A slice is parsed once for each of its versions."""
        obj = self._cache[key]
        known = self._parsed.get(key)
        if known is None or known[0] is not obj:
            known = self._parsed[key] = obj, tuple(_entries(read(PlacementDecision, obj)))
        return known[1]

    def wait(self, uid: str) -> float:
        """Seconds until the record may be appended to."""
        part = _next(self._slices(uid))
        return 0.0 if part is None else self._wait(part)

    async def append(self, rollout: Rollout, clusters: Sequence[AdmittedCluster]) -> None:
        """Append to the record, in this order, as many as it takes now; the next decision admits the others.

        Raises RecordConflict, after which part of `clusters` may be appended; KubeError.
        """
        slices, left = self._slices(rollout.metadata.uid), list(clusters)
        while left:
            part = _next(slices)
            if part is None:
                slices.append(await self._create(rollout, _number(slices), left[:CAPACITY]))
                left = left[CAPACITY:]
            elif self._wait(part) > 0:
                return
            else:
                room = CAPACITY - len(part.decisions)
                written = await self._write(part, [*part.decisions, *map(_entry, left[:room])])
                slices[slices.index(part)] = written
                left = left[room:]

    async def withdraw(self, uid: str, clusters: Collection[str]) -> float:
        """Take clusters that have not begun out of the record; returns the seconds until the others can be, 0 for none.

        Raises RecordConflict, KubeError.
        """
        later = 0.0
        for part in self._slices(uid):
            left = [one for one in part.decisions if one.cluster_profile_ref.name not in clusters]
            if len(left) == len(part.decisions):
                continue
            if (wait := self._wait(part)) > 0:
                later = max(later, wait)
            else:
                await self._write(part, left)
        return later

    async def read_again(self, rollout: str, namespace: str) -> None:
        """Updates the cache with the slices as the server has them now. Raises KubeError."""
        for one in (await self._client.list(PLACEMENT_DECISIONS, namespace, f"{Label.DECISION_KEY}={rollout}")).items:
            self._cache.learn(one)

    def left_over(self, rollout: Rollout) -> str:
        """The name of a slice of another owner that has the name of this rollout's next one; empty for none."""
        metadata = rollout.metadata
        key = ObjectKey(metadata.namespace, _name(rollout, _number(self._slices(metadata.uid))))
        return "" if self._cache.get(key) is None else key.name

    def _slices(self, uid: str) -> list[PlacementDecision]:
        found = [read(PlacementDecision, obj) for obj in self._cache.by(_BY_OWNER, uid)]
        return sorted(found, key=_index)

    def _wait(self, part: PlacementDecision) -> float:
        written = self._written.get(part.metadata.name)
        return 0.0 if written is None else max(0.0, written + PERIOD - self._clock.monotonic())

    def _learn(self, written: Object) -> PlacementDecision:
        """Note a write once it is over: two writes of a slice are a second apart, however long each takes."""
        now = self._clock.monotonic()
        self._written = {name: at for name, at in self._written.items() if at + PERIOD > now}
        part = read(PlacementDecision, written)
        self._written[part.metadata.name] = now
        self._cache.learn(written)
        return part

    async def _write(self, part: PlacementDecision, decisions: Sequence[ClusterDecision]) -> PlacementDecision:
        patch = {
            "metadata": {"resourceVersion": part.metadata.resource_version},
            "decisions": msgspec.to_builtins(decisions),
        }
        try:
            written = await self._client.patch(
                PLACEMENT_DECISIONS,
                part.metadata.name,
                patch,
                part.metadata.namespace,
                PatchKind.MERGE,
                field_manager=self._field_manager,
            )
        except (Conflict, NotFound) as error:
            raise RecordConflict(str(error)) from error
        return self._learn(written)

    async def _create(self, rollout: Rollout, number: int, clusters: Iterable[AdmittedCluster]) -> PlacementDecision:
        try:
            written = await self._client.create(
                PLACEMENT_DECISIONS, _new_slice(rollout, number, clusters), field_manager=self._field_manager
            )
        except AlreadyExists as error:
            raise RecordConflict(str(error)) from error
        return self._learn(written)


def _next(slices: Sequence[PlacementDecision]) -> PlacementDecision | None:
    """The slice to append to; None for a new one.

    It depends on the record alone and not on the time, so that all deciders that know the same record choose the same.
    """
    having_room = [one for one in slices if len(one.decisions) < CAPACITY]
    if len(having_room) < OPEN:
        return None
    return min(having_room, key=lambda one: number_of(one.metadata.resource_version))


def _new_slice(rollout: Rollout, number: int, clusters: Iterable[AdmittedCluster]) -> Object:
    metadata = rollout.metadata
    labels = {
        Label.DECISION_KEY: metadata.name,
        Label.DECISION_INDEX: str(number),
        Label.PLACEMENT_KEY: rollout.spec.policy_name,
    }
    made = PlacementDecision(
        metadata=ObjectMeta(
            name=_name(rollout, number),
            namespace=metadata.namespace,
            labels={name: value for name, value in labels.items() if value},
            owner_references=(
                OwnerReference(ROLLOUTS.api_version, ROLLOUTS.kind, metadata.name, metadata.uid, controller=True),
            ),
        ),
        decisions=tuple(map(_entry, clusters)),
        scheduler_name=SCHEDULER,
    )
    return encode(made)


def _name(rollout: Rollout, number: int) -> str:
    return f"{rollout.metadata.name}-{number}"


def _number(slices: Iterable[PlacementDecision]) -> int:
    """The number of the next slice."""
    return max(map(_index, slices), default=-1) + 1


def _index(part: PlacementDecision) -> int:
    text = part.metadata.labels.get(Label.DECISION_INDEX, "")
    return int(text) if text.isdecimal() else 0


def _entry(one: AdmittedCluster) -> ClusterDecision:
    return ClusterDecision(ClusterProfileRef(one.cluster), f"admitted {format_time(one.at)} in stage {one.stage}")


def _entries(part: PlacementDecision) -> Iterable[AdmittedCluster]:
    """The clusters of a slice. One whose reason somebody has rewritten stays admitted, in no stage and long ago."""
    for one in part.decisions:
        found = _REASON.fullmatch(one.reason)
        try:
            at, stage = (parse_time(found[1]), found[2]) if found else (0.0, "")
        except ValueError:
            at, stage = 0.0, ""
        yield AdmittedCluster(one.cluster_profile_ref.name, stage, at)
