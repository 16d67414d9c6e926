"""Keeps the `rules` of stored ClusterRoles with an aggregationRule equal to the aggregated ones.

The authorizer aggregates by itself and never waits for this; it serves readers of the role. A cluster is reconciled
when one of its ClusterRoles was written (`changed`); a role with correct rules is not written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from hortus.apiserver.authz.aggregation import aggregated_rules
from hortus.apiserver.authz.policy import API_GROUP
from hortus.apiserver.keyqueue import KeyQueue
from hortus.apiserver.store.backend import Commit, Mismatch, RecordPage, StoredRecord, StoreKey, Value
from hortus.apiserver.store.encoding import encode
from hortus.kube.clock import Clock
from hortus.kube.errors import RequestEntityTooLarge
from hortus.kube.objects import Object

_log = logging.getLogger("hortus.apiserver.authz")
_SUFFIX = f"{API_GROUP}/clusterroles"


class RoleStorage(Protocol):
    async def list(self, bucket: str) -> RecordPage: ...

    async def put(self, key: StoreKey, value: Value, *, replaced: StoredRecord | None) -> StoredRecord: ...


class RoleAggregator:
    def __init__(self, storage: RoleStorage, clock: Clock, full: Callable[[str], Awaitable[bool]]) -> None:
        """`full` reports whether a cluster has reached its quota."""
        self._storage = storage
        self._full = full
        self.queue: KeyQueue[str] = KeyQueue("role-aggregation", clock, self.aggregate, str)

    async def start(self) -> None:
        await self.queue.start()

    async def stop(self) -> None:
        await self.queue.stop()

    def changed(self, change: Commit) -> None:
        cluster, _, suffix = change.key.bucket.partition("/")
        if suffix == _SUFFIX:
            self.queue.add(cluster)

    async def aggregate(self, cluster: str) -> None:
        """Writes every aggregated role of `cluster` whose rules differ from the sum; repeats while one role feeds
        another."""
        for _ in range(100):
            page = await self._storage.list(f"{cluster}/{_SUFFIX}")
            roles = [(record, _decoded(record)) for record in page.records]
            wrong = []
            for record, role in roles:
                if (pair := _corrected(record, role, roles)) is not None:
                    wrong.append(pair)
                if role.get("aggregationRule"):
                    await asyncio.sleep(0)  # each passes all roles
            written = [await self._write(cluster, record, role) for record, role in wrong]
            if not any(written):
                return

    async def _write(self, cluster: str, record: StoredRecord, role: Object) -> bool:
        """False for a role that cannot be stored: a sum may be larger than the limit of its parts.

        A few roles that aggregate each other would multiply their rules past any quota.
        """
        value = encode(role)
        if len(value.head) + len(value.tail) > len(record.value) and await self._full(cluster):
            _log.warning(
                "an aggregated role keeps its rules, since the cluster's quota is used up",
                extra={"bucket": record.bucket, "object": record.name},
            )
            return False
        try:
            await self._storage.put(record.key, value, replaced=record)
        except RequestEntityTooLarge as error:
            _log.warning(
                "an aggregated role keeps its rules",
                extra={"bucket": record.bucket, "object": record.name, "error": error.message},
            )
            return False
        except Mismatch:
            pass  # Another writer changed it meanwhile; the next round reads the change.
        return True


def _corrected(
    record: StoredRecord, role: Object, roles: list[tuple[StoredRecord, Object]]
) -> tuple[StoredRecord, Object] | None:
    if not role.get("aggregationRule"):
        return None
    rules = [rule.to_json() for rule in aggregated_rules(role, (other for _, other in roles))]
    if rules == (role.get("rules") or []):
        return None
    return record, {**role, "rules": rules}


def _decoded(record: StoredRecord) -> Object:
    role: Object = msgspec.json.decode(record.value)
    return role
