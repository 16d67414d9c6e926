"""Reads of a store whose index is the truth at every moment: of one process, whose every write goes through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

from hortus.apiserver.store._index import StoreIndex
from hortus.apiserver.store.backend import (
    Follower,
    ListOptions,
    RecordPage,
    StoredRecord,
    StoreKey,
    StoreUsage,
    StoreWatch,
)


class IndexReads:
    """The half of a `Backend` that reads, from `_index`, which is set by the store; all reads are fresh."""

    _index: StoreIndex

    @property
    def revision(self) -> int:
        return self._index.revision

    async def sync(self) -> int:
        return self._index.revision

    def follow(self, follower: Follower, dropped: Callable[[str], None]) -> None:
        self._index.follow(follower, dropped)

    @property
    def compacted(self) -> int:
        return self._index.history.compacted

    async def get(self, key: StoreKey, *, fresh: bool = True) -> StoredRecord | None:
        return self._index.get(key)

    async def list(self, bucket: str, **options: Unpack[ListOptions]) -> RecordPage:
        return self._index.page(bucket, **options)

    async def count(self, bucket: str) -> int:
        return self._index.count(bucket)

    async def buckets(self, prefix: str) -> Sequence[str]:
        return self._index.buckets(prefix)

    async def usage(self, prefix: str) -> StoreUsage:
        return self._index.usage(prefix)

    def watch(self, bucket: str, *, after: int, prefix: str = "") -> StoreWatch:
        return self._index.watch(bucket, after=after, prefix=prefix)
