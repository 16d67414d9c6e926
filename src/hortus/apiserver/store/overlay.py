"""Born objects: the objects that every logical cluster has from the start, stored once for all.

A Backend over a Backend: where a cluster has not written an object of its own, the shared one is shown, at revision
`BORN_REVISION`. A write over it stores a copy in that cluster, a deletion stores a tombstone, and for readers and
watchers both look as if the object had always been stored there. So five thousand clusters with the default roles cost
no bytes, and creating one costs no writes. The trade-off: one page of a bucket with more than a few born objects reads
the whole bucket; such buckets are small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Self, Unpack

from hortus.apiserver.store.backend import (
    Backend,
    Commit,
    Follower,
    ListOptions,
    Mismatch,
    RecordPage,
    StoredRecord,
    StoreKey,
    StoreUsage,
    StoreWatch,
    Value,
)

BORN_REVISION = 1
"""No object has it: a store's first write is the server's keys."""

_TOMBSTONE = b'{"tombstone":'
_FEW = 4
"""Born objects of a bucket up to which its pages and its number of objects are read without the rest of it."""
_NONE: Mapping[str, bytes] = {}

Born = Mapping[str, Mapping[str, bytes]]
"""`<group or core>/<plural>` -> `<namespace>/<name>` -> the encoded object with resourceVersion 1."""


Identify = Callable[[str, str, bytes], bytes]
"""Bucket, name and encoded shared object -> the object as that cluster shows it."""


class Overlay:
    """`backend` with `born` in every logical cluster. All writes must go through this class."""

    def __init__(self, backend: Backend, born: Born) -> None:
        self._backend = backend
        self._born = {suffix: dict(sorted(objects.items())) for suffix, objects in born.items()}
        self._identify: Identify | None = None

    def identify(self, identify: Identify) -> None:
        """Sets the function that turns a shared object into that of one cluster."""
        self._identify = identify

    async def start(self) -> None:
        await self._backend.start()

    async def close(self) -> None:
        await self._backend.close()

    @property
    def revision(self) -> int:
        return self._backend.revision

    async def check(self) -> None:
        await self._backend.check()

    def follow(self, follower: Follower, dropped: Callable[[str], None]) -> None:
        def shown(change: Commit) -> None:
            if change.bucket.partition("/")[2] in self._born:
                visible = self.shown_change(change)
                if visible is None:
                    return
                change = visible
            follower(change)

        self._backend.follow(shown, dropped)

    @property
    def compacted(self) -> int:
        return self._backend.compacted

    async def sync(self) -> int:
        return await self._backend.sync()

    async def get(self, key: StoreKey, *, fresh: bool = True) -> StoredRecord | None:
        record = await self._backend.get(key, fresh=fresh)
        return self._shown(key, record)

    async def put(self, key: StoreKey, value: Value, *, expected: int | None) -> StoredRecord:
        born = self._born_record(key)
        if born is None or expected is None:
            return await self._backend.put(key, value, expected=expected)
        stored = await self._backend.get(key)
        shown = self._shown(key, stored)
        if (shown.revision if shown else 0) != expected:
            raise Mismatch(key, shown)
        return await self._put_over(key, value, stored)

    async def delete(self, key: StoreKey, *, expected: int | None, final: Value | None = None) -> int:
        if self._born_record(key) is None:
            return await self._backend.delete(key, expected=expected, final=final)
        stored = await self._backend.get(key)
        shown = self._shown(key, stored)
        if shown is None or expected not in (None, shown.revision):
            raise Mismatch(key, shown)
        return (await self._put_over(key, _tombstone(final), stored)).revision

    async def list(self, bucket: str, **options: Unpack[ListOptions]) -> RecordPage:
        prefix, after, limit = options.get("prefix", ""), options.get("after", ""), options.get("limit", 0)
        suffix = bucket.partition("/")[2]
        born = {
            name: self._record(bucket, name, value)
            for name, value in self._born.get(suffix, _NONE).items()
            if name > after and name.startswith(prefix)
        }
        if not born:
            return await self._backend.list(bucket, **options)
        # With so many more, a page has `limit` visible records although tombstones are among those that are read.
        options["limit"] = limit + len(born) if limit and len(born) <= _FEW else 0
        page = await self._backend.list(bucket, **options)
        later = 0
        if page.remaining:
            beyond = [name for name in born if name > page.records[-1].name]
            for name in beyond:
                later += await self._adds(StoreKey(bucket, name))
                del born[name]
        return _laid_over(page, born, limit, later=later, whole=not (limit or after))

    async def _adds(self, key: StoreKey) -> int:
        """The number of records that a born object adds to the stored ones: -1 if it is buried, 0 if written over."""
        stored = await self._backend.get(key, fresh=False)
        return 1 if stored is None else -1 if _buried(stored) else 0

    async def count(self, bucket: str) -> int:
        born = self._born.get(bucket.partition("/")[2], _NONE)
        if len(born) > _FEW:
            return len((await self.list(bucket)).records)
        added = [await self._adds(StoreKey(bucket, name)) for name in born]
        return await self._backend.count(bucket) + sum(added)

    async def buckets(self, prefix: str) -> Sequence[str]:
        stored = await self._backend.buckets(prefix)
        cluster, slash, _ = prefix.partition("/")
        if not slash:
            return stored
        born = (f"{cluster}/{suffix}" for suffix in self._born)
        return sorted({*stored, *(name for name in born if name.startswith(prefix))})

    async def usage(self, prefix: str) -> StoreUsage:
        """The usage of the objects that the cluster itself stored, without born ones."""
        return await self._backend.usage(prefix)

    async def drop(self, prefix: str, *, guard: StoreKey | None = None, expected: int = 0) -> int:
        return await self._backend.drop(prefix, guard=guard, expected=expected)

    def watch(self, bucket: str, *, after: int, prefix: str = "") -> StoreWatch:
        watch = self._backend.watch(bucket, after=after, prefix=prefix)
        return _OverlayWatch(watch, self) if bucket.partition("/")[2] in self._born else watch

    async def compact(self, revision: int) -> None:
        await self._backend.compact(revision)

    def shown_change(self, change: Commit) -> Commit | None:
        """The change as watchers see it; None when it is invisible."""
        replaced = self._shown(change.key, change.replaced)
        if change.record is None or not _buried(change.record):
            return Commit(change.revision, change.record, replaced, change.final)
        if replaced is None:
            return None
        return Commit(change.revision, None, replaced, _final(change.record))

    async def _put_over(self, key: StoreKey, value: Value, stored: StoredRecord | None) -> StoredRecord:
        try:
            return await self._backend.put(key, value, expected=stored.revision if stored else 0)
        except Mismatch as problem:
            raise Mismatch(key, self._shown(key, problem.current)) from problem

    def _born_record(self, key: StoreKey) -> StoredRecord | None:
        value = self._born.get(key.bucket.partition("/")[2], {}).get(key.name)
        return self._record(key.bucket, key.name, value) if value is not None else None

    def _record(self, bucket: str, name: str, value: bytes) -> StoredRecord:
        if self._identify is not None:
            value = self._identify(bucket, name, value)
        return StoredRecord(bucket, name, value, BORN_REVISION)

    def _shown(self, key: StoreKey, stored: StoredRecord | None) -> StoredRecord | None:
        if stored is None:
            return self._born_record(key)
        return None if _buried(stored) else stored


class _OverlayWatch:
    def __init__(self, watch: StoreWatch, overlay: Overlay) -> None:
        self._watch = watch
        self._overlay = overlay

    @property
    def seen(self) -> int:
        return self._watch.seen

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[Commit]:
        while True:
            batch = await anext(self._watch)
            shown = [seen for change in batch if (seen := self._overlay.shown_change(change)) is not None]
            if shown:
                return shown

    async def aclose(self) -> None:
        await self._watch.aclose()


def _laid_over(
    page: RecordPage, born: Mapping[str, StoredRecord], limit: int, *, later: int, whole: bool
) -> RecordPage:
    """The stored records of `page` over the born ones; `later` of them follow the page in addition to its own."""
    shown = dict(born)
    for record in page.records:
        if _buried(record):
            shown.pop(record.name, None)
        else:
            shown[record.name] = record
    records = [shown[name] for name in sorted(shown)]
    kept = records[:limit] if limit else records
    remaining = len(records) - len(kept) + page.remaining + later
    return RecordPage(kept, page.revision, remaining, page.state if whole else None)


def _buried(record: StoredRecord) -> bool:
    return record.value.startswith(_TOMBSTONE)


def _tombstone(final: Value | None) -> Value:
    """A tombstone, which keeps the object's last state for watchers."""
    return Value(_TOMBSTONE + (final.head if final else b""), (final.tail if final else b"") + b"}", leaving=True)


def _final(tombstone: StoredRecord) -> bytes | None:
    final = tombstone.value[len(_TOMBSTONE) : -1]
    return final if final.startswith(b"{") else None
