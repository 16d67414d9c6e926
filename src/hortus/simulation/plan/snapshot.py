"""The objects of a fork at one moment: bytes by bucket and name, shared with the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from hortus.apiserver.store.backend import StoreKey
from hortus.simulation.fork import Fork
from hortus.simulation.fork.store import UNREAD


class StateChange(NamedTuple):
    """One object that differs between two moments; None where it does not exist."""

    cluster: str
    suffix: str
    """`<group or core>/<plural>`"""
    namespace: str
    name: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    @property
    def key(self) -> StoreKey:
        return StoreKey(f"{self.cluster}/{self.suffix}", f"{self.namespace}/{self.name}")

    @property
    def either(self) -> Mapping[str, Any]:
        found = self.after if self.after is not None else self.before
        assert found is not None, "a change has a state before or after"
        return found


class ForkSnapshot(NamedTuple):
    buckets: Mapping[str, Mapping[str, bytes]]

    @classmethod
    def of(cls, fork: Fork) -> ForkSnapshot:
        """The present state, without events, leases and the server's own records."""
        found = {
            bucket: records
            for bucket, records in fork.store.present()
            if not bucket.startswith("_") and bucket.partition("/")[2] not in UNREAD
        }
        return cls(found)

    def changes(self, after: ForkSnapshot, initial: Mapping[str, Mapping[str, bytes]]) -> Iterator[StateChange]:
        """The objects that differ in `after`; what was read in between is compared with how it was read."""
        for bucket in sorted({*self.buckets, *after.buckets}):
            old = self.buckets.get(bucket)
            old = initial.get(bucket, {}) if old is None else old
            new = after.buckets.get(bucket, {})
            if old is new:
                continue
            cluster, _, suffix = bucket.partition("/")
            for key in sorted({*old, *new}):
                left, right = old.get(key), new.get(key)
                if left == right:
                    continue
                namespace, _, name = key.partition("/")
                yield StateChange(cluster, suffix, namespace, name, _decoded(left), _decoded(right))


def _decoded(value: bytes | None) -> Mapping[str, Any] | None:
    if value is None or value.startswith(b'{"tombstone":'):
        return None
    found: Mapping[str, Any] = orjson.loads(value)
    return found
