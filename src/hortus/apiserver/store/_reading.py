"""Reads of a store whose index is the truth at every moment: of one process, whose every write goes through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

from hortus.apiserver.store._index import Index
from hortus.apiserver.store.backend import Follower, Key, ListOptions, Page, Record, Usage, Watch


class IndexReads:
    """The half of a `Backend` that reads, from `_index`, which is set by the store; all reads are fresh."""

    _index: Index

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

    async def get(self, key: Key, *, fresh: bool = True) -> Record | None:
        return self._index.get(key)

    async def list(self, bucket: str, **options: Unpack[ListOptions]) -> Page:
        return self._index.page(bucket, **options)

    async def count(self, bucket: str) -> int:
        return self._index.count(bucket)

    async def buckets(self, prefix: str) -> Sequence[str]:
        return self._index.buckets(prefix)

    async def usage(self, prefix: str) -> Usage:
        return self._index.usage(prefix)

    def watch(self, bucket: str, *, after: int, prefix: str = "") -> Watch:
        return self._index.watch(bucket, after=after, prefix=prefix)
