"""Keeps the `rules` of stored ClusterRoles with an aggregationRule equal to the sum that they stand for.

The authorizer sums by itself and never waits for this; it is for those who read the role. One task for all
clusters, woken by writes of ClusterRoles (`changed`); a role whose rules are right already is not written.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import msgspec

from hortus.apiserver.authz.aggregation import aggregated_rules
from hortus.apiserver.authz.policy import API_GROUP
from hortus.apiserver.store.backend import Change, Key, Mismatch, Page, Record, StoreFailed, Value
from hortus.apiserver.store.encoding import encode
from hortus.kube.clock import Clock
from hortus.kube.objects import Object

_RETRY_SECONDS = 1.0
_SUFFIX = f"{API_GROUP}/clusterroles"


class Storage(Protocol):
    async def list(self, bucket: str) -> Page: ...

    async def put(self, key: Key, value: Value, *, replaced: Record | None) -> Record: ...


class RoleAggregator:
    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._due: set[str] = set()
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="role-aggregation")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def changed(self, change: Change) -> None:
        cluster, _, suffix = change.key.bucket.partition("/")
        if suffix == _SUFFIX:
            self._due.add(cluster)
            self._woken.set()

    async def _run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._due:
                cluster = self._due.pop()
                try:
                    await self.aggregate(cluster)
                except StoreFailed:
                    self._due.add(cluster)
                    self._clock.call_later(_RETRY_SECONDS, self._woken.set)
                    break

    async def aggregate(self, cluster: str) -> None:
        """Write every aggregated role of `cluster` whose rules are not the sum; again while one feeds another."""
        for _ in range(100):
            page = await self._storage.list(f"{cluster}/{_SUFFIX}")
            roles = [(record, _decoded(record)) for record in page.records]
            wrong = [pair for record, role in roles if (pair := _corrected(record, role, roles)) is not None]
            for record, role in wrong:
                await self._write(record, role)
            if not wrong:
                return

    async def _write(self, record: Record, role: Object) -> None:
        try:
            await self._storage.put(record.key, encode(role), replaced=record)
        except Mismatch:
            # Somebody wrote it meanwhile; the next round looks at what they wrote.
            return


def _corrected(record: Record, role: Object, roles: list[tuple[Record, Object]]) -> tuple[Record, Object] | None:
    if not role.get("aggregationRule"):
        return None
    rules = [rule.to_json() for rule in aggregated_rules(role, (other for _, other in roles))]
    if rules == (role.get("rules") or []):
        return None
    return record, {**role, "rules": rules}


def _decoded(record: Record) -> Object:
    role: Object = msgspec.json.decode(record.value)
    return role
