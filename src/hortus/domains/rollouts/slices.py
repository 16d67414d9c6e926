"""The record of a rollout: PlacementDecision slices, to which admitted clusters are appended.

A cluster is appended to the last slice under its resourceVersion, or in the next slice, whose name follows from its
number. A writer that has not seen every admission so far meets a conflict; see docs/adr/0013-rollouts.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from hortus.domains.rollouts.decisions import AdmittedCluster
from hortus.engine import Cache, read
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
from hortus.kube.errors import AlreadyExists, Conflict, NotFound
from hortus.kube.objects import Object, ObjectKey, format_time, parse_time
from hortus.schema import ObjectMeta, OwnerReference, encode

CAPACITY: Final = 100
"""Clusters in a slice; the CRD's limit (kubernetes-sigs/cluster-inventory-api, PlacementDecision)."""
SCHEDULER: Final = "hortus"
_REASON = re.compile(r"admitted (\S+) in stage (\S+)")
_BY_KEY = "decision-key"


class RecordConflict(Exception):
    """Somebody else appended to the record since it was read: read it again and decide again."""


class SliceRecord:
    """The slices of all rollouts of one namespace."""

    def __init__(self, client: Client, cache: Cache, *, field_manager: str) -> None:
        self._client = client
        self._cache = cache
        self._field_manager = field_manager
        self._parsed: dict[ObjectKey, tuple[Object, tuple[AdmittedCluster, ...]]] = {}
        cache.add_index(
            _BY_KEY, lambda obj: (read(PlacementDecision, obj).metadata.labels.get(Label.DECISION_KEY, ""),)
        )

    def admitted(self, rollout: str) -> dict[str, AdmittedCluster]:
        """The clusters that were admitted, by name, as far as the cache knows."""
        keys = self._cache.keys_by(_BY_KEY, rollout)
        return {one.cluster: one for key in keys for one in self._entries(key)}

    def _entries(self, key: ObjectKey) -> tuple[AdmittedCluster, ...]:
        """A slice is parsed once for each of its versions."""
        obj = self._cache[key]
        known = self._parsed.get(key)
        if known is None or known[0] is not obj:
            known = self._parsed[key] = obj, tuple(_entries(read(PlacementDecision, obj)))
        return known[1]

    async def append(self, rollout: Rollout, clusters: Sequence[AdmittedCluster]) -> None:
        """Append to the record. Raises RecordConflict, after which part of `clusters` may be appended; KubeError."""
        name, left = rollout.metadata.name, list(clusters)
        slices = self._slices(name)
        last = slices[-1] if slices else None
        if last is not None and (room := CAPACITY - len(last.decisions)) > 0:
            await self._write(last, [*last.decisions, *map(_entry, left[:room])])
            left = left[room:]
        number = 0 if last is None else _index(last) + 1
        while left:
            await self._create(rollout, number, left[:CAPACITY])
            left, number = left[CAPACITY:], number + 1

    async def withdraw(self, rollout: str, clusters: Collection[str]) -> None:
        """Take clusters that have not begun out of the record. Raises RecordConflict, KubeError."""
        for part in self._slices(rollout):
            left = [one for one in part.decisions if one.cluster_profile_ref.name not in clusters]
            if len(left) < len(part.decisions):
                await self._write(part, left)

    async def read_again(self, rollout: str, namespace: str) -> None:
        """Updates the cache with the slices as the server has them now. Raises KubeError."""
        for one in (await self._client.list(PLACEMENT_DECISIONS, namespace, f"{Label.DECISION_KEY}={rollout}")).items:
            self._cache.learn(one)

    def _slices(self, rollout: str) -> list[PlacementDecision]:
        found = [read(PlacementDecision, obj) for obj in self._cache.by(_BY_KEY, rollout)]
        return sorted(found, key=_index)

    async def _write(self, part: PlacementDecision, decisions: Sequence[ClusterDecision]) -> None:
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
        self._cache.learn(written)

    async def _create(self, rollout: Rollout, number: int, clusters: Iterable[AdmittedCluster]) -> None:
        try:
            written = await self._client.create(
                PLACEMENT_DECISIONS, _new_slice(rollout, number, clusters), field_manager=self._field_manager
            )
        except AlreadyExists as error:
            raise RecordConflict(str(error)) from error
        self._cache.learn(written)


def _new_slice(rollout: Rollout, number: int, clusters: Iterable[AdmittedCluster]) -> Object:
    metadata = rollout.metadata
    labels = {
        Label.DECISION_KEY: metadata.name,
        Label.DECISION_INDEX: str(number),
        Label.PLACEMENT_KEY: rollout.spec.policy_name,
    }
    made = PlacementDecision(
        metadata=ObjectMeta(
            name=f"{metadata.name}-{number}",
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
