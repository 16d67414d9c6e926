"""A store over live clusters: a kind is read whole at its first use, and every write stays in memory.

A bucket (one kind of one cluster) is filled before its first read or write is answered. What was read gets revisions of
this store, since clusters count theirs apart; the state as it was read is kept, to be compared with in the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Unpack

from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.store import MemoryBackend
from hortus.apiserver.store.backend import (
    Follower,
    ListOptions,
    RecordPage,
    StoredRecord,
    StoreKey,
    StoreUsage,
    StoreWatch,
    Value,
)
from hortus.kube.errors import ServiceUnavailable
from hortus.kube.objects import Object
from hortus.simulation.fork.live import LiveReadFailed

UNREAD: Final = frozenset(
    {
        "core/events",
        "events.k8s.io/events",
        "coordination.k8s.io/leases",
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
    }
)
"""Kinds that begin empty: what nobody compares, and webhooks, which would call programs of the real world."""


class Filling(NamedTuple):
    """The objects of one kind that a live cluster has."""

    kind: Kind
    objects: Iterable[Object]


Fill = Callable[[str, str], Awaitable[Filling | None]]
"""Reads a kind, `<group or core>/<plural>`, of a cluster; None for one that is not read. Raises LiveReadFailed."""


class ReadThrough:
    """A `Backend`. `fill` is set before the first request."""

    def __init__(self, backend: MemoryBackend) -> None:
        self._backend = backend
        self.fill: Fill = _nothing
        self._filled: set[str] = set()
        self._filling: dict[str, asyncio.Future[None]] = {}
        self._unreadable: dict[str, str] = {}
        self._initial: dict[str, dict[str, bytes]] = {}

    @property
    def initial(self) -> Mapping[str, Mapping[str, bytes]]:
        """The objects as they were read, by bucket and name."""
        return self._initial

    @property
    def is_filling(self) -> bool:
        """True in the step in which a write only brings what was read."""
        return self._bringing

    _bringing = False

    async def ensure(self, bucket: str) -> None:
        """Returns when the bucket is filled. Raises ServiceUnavailable where its cluster cannot be read."""
        if bucket in self._filled:
            return
        if (reason := self._unreadable.get(bucket)) is not None:
            raise ServiceUnavailable(reason)
        waiting = self._filling.get(bucket)
        if waiting is not None:
            await asyncio.shield(waiting)
            return
        waiting = self._filling[bucket] = asyncio.ensure_future(self._read(bucket))
        await asyncio.shield(waiting)

    async def _read(self, bucket: str) -> None:
        cluster, _, suffix = bucket.partition("/")
        try:
            found = None if suffix in UNREAD else await self.fill(cluster, suffix)
        except LiveReadFailed as error:
            self._unreadable[bucket] = str(error)
            raise ServiceUnavailable(str(error)) from None
        finally:
            self._filling.pop(bucket, None)
        if found is not None and bucket not in self._filled:
            await self._bring(bucket, found)
        self._filled.add(bucket)

    async def _bring(self, bucket: str, found: Filling) -> None:
        initial = self._initial.setdefault(bucket, {})
        resource = found.kind.resource
        self._bringing = True
        try:
            for obj in found.objects:
                metadata = obj["metadata"]
                name = f"{metadata.get('namespace', '')}/{metadata['name']}"
                obj = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
                # A memory backend commits within the call: nobody runs in between.
                record = await self._backend.put(StoreKey(bucket, name), found.kind.encode(obj), expected=None)
                initial[name] = record.value
        finally:
            self._bringing = False

    async def leave_out(self, bucket: str, names: Iterable[str]) -> None:
        """Take objects out as if they had not been there."""
        self._bringing = True
        try:
            for name in names:
                await self._backend.delete(StoreKey(bucket, name), expected=None)
                self._initial.get(bucket, {}).pop(name, None)
        finally:
            self._bringing = False

    def present(self) -> Iterator[tuple[str, Mapping[str, bytes]]]:
        """The buckets that were used, each with its objects as they are now."""
        for bucket in sorted({*self._filled, *self._backend._index.buckets("")}):
            page = self._backend._index.page(bucket)
            yield bucket, {record.name: record.value for record in page.records}

    # The store.

    async def start(self) -> None:
        await self._backend.start()

    async def close(self) -> None:
        await self._backend.close()

    async def check(self) -> None:
        await self._backend.check()

    @property
    def revision(self) -> int:
        return self._backend.revision

    @property
    def compacted(self) -> int:
        return self._backend.compacted

    async def sync(self) -> int:
        return self._backend.revision

    def follow(self, follower: Follower, dropped: Callable[[str], None]) -> None:
        self._backend.follow(follower, dropped)

    async def get(self, key: StoreKey, *, fresh: bool = True) -> StoredRecord | None:
        await self.ensure(key.bucket)
        return await self._backend.get(key)

    async def put(self, key: StoreKey, value: Value, *, expected: int | None) -> StoredRecord:
        await self.ensure(key.bucket)
        return await self._backend.put(key, value, expected=expected)

    async def delete(self, key: StoreKey, *, expected: int | None, final: Value | None = None) -> int:
        await self.ensure(key.bucket)
        return await self._backend.delete(key, expected=expected, final=final)

    async def list(self, bucket: str, **options: Unpack[ListOptions]) -> RecordPage:
        await self.ensure(bucket)
        return await self._backend.list(bucket, **options)

    async def count(self, bucket: str) -> int:
        await self.ensure(bucket)
        return await self._backend.count(bucket)

    async def buckets(self, prefix: str) -> Sequence[str]:
        return await self._backend.buckets(prefix)

    async def usage(self, prefix: str) -> StoreUsage:
        return await self._backend.usage(prefix)

    async def drop(self, prefix: str, *, guard: StoreKey | None = None, expected: int = 0) -> int:
        return await self._backend.drop(prefix, guard=guard, expected=expected)

    def watch(self, bucket: str, *, after: int, prefix: str = "") -> StoreWatch:
        return self._backend.watch(bucket, after=after, prefix=prefix)

    async def compact(self, revision: int) -> None:
        await self._backend.compact(revision)


async def _nothing(cluster: str, suffix: str) -> Filling | None:
    return None
