"""The state and recent history of a store in memory, from which every store answers reads and watches.

In: committed changes, in order of revision; the store checks expectations and makes changes durable. Buckets are
grouped by the first part of their names, the logical cluster, so that the cost of an operation on a cluster depends on
the size of that cluster. A bucket exists while it holds a record or a change of the history.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence

from hortus.apiserver.store._bucket import Bucket
from hortus.apiserver.store._history import BucketDrop, Entry, History, HistoryLimits
from hortus.apiserver.store._watches import HubWatch, WatchHub, WatchLimits
from hortus.apiserver.store.backend import (
    Commit,
    Follower,
    Mismatch,
    RecordPage,
    RevisionCompacted,
    RevisionInFuture,
    StoredRecord,
    StoreKey,
    StoreUsage,
)
from hortus.kube.clock import Clock


def _nothing(_: Sequence[Entry]) -> None:
    pass


class StoreIndex:
    def __init__(
        self,
        clock: Clock,
        *,
        history: HistoryLimits,
        watches: WatchLimits,
        forgotten: Callable[[Sequence[Entry]], None] = _nothing,
    ) -> None:
        """`forgotten` is called with the entries that leave the history, in order."""
        self.revision = 0
        self.history = History(history, clock, forgotten=self._on_forgotten)
        self.hub = WatchHub(watches, lambda: self.revision)
        self._forgotten = forgotten
        self._buckets: dict[str, Bucket] = {}
        self._clusters: dict[str, list[str]] = {}
        self._followers: list[tuple[Follower, Callable[[str], None]]] = []

    def follow(self, follower: Follower, dropped: Callable[[str], None]) -> None:
        """See `backend.Backend.follow`."""
        self._followers.append((follower, dropped))

    def hand_over(self, other: StoreIndex) -> None:
        """Moves the followers to `other`, which replaces this index; they first get the differences."""
        other._followers = self._followers
        for change in _differences(self, other):
            for follower, _ in self._followers:
                follower(change)

    # Writing

    def commit(self, change: Commit) -> None:
        bucket = self._bucket(change.bucket)
        bucket.apply(change)
        self.revision = change.revision
        self.history.add(change)
        for follower, _ in self._followers:
            follower(change)
        self.hub.publish(change)

    def drop(self, prefix: str, revision: int) -> int:
        """Commits the removal of all buckets with `prefix`; returns the number of removed objects."""
        dropped = [record.revision for bucket in self._under(prefix) for record in bucket.records.values()]
        for bucket in self._under(prefix):
            self._close(bucket)
        self.revision = revision
        self.history.add(BucketDrop(revision, prefix, tuple(dropped)))
        for _, dropped_prefix in self._followers:
            dropped_prefix(prefix)
        self.hub.end(prefix, RevisionCompacted)
        return len(dropped)

    def compact(self, revision: int) -> None:
        if revision > self.revision:
            raise RevisionInFuture(f"revision {revision} is ahead of the store's {self.revision}")
        self.history.barrier = max(self.history.barrier, revision)
        self.history.forget(revision)

    def keep(self, key: StoreKey, value: bytes, revision: int, replaced: StoredRecord | None) -> StoredRecord:
        """The record of a write; its names share the strings of stored ones."""
        if replaced is not None:
            return StoredRecord(replaced.bucket, replaced.name, value, revision)
        bucket = self._buckets.get(key.bucket)
        return StoredRecord(key.bucket if bucket is None else bucket.name, key.name, value, revision)

    # Reading

    def get(self, key: StoreKey) -> StoredRecord | None:
        bucket = self._buckets.get(key.bucket)
        return None if bucket is None else bucket.records.get(key.name)

    def page(
        self,
        name: str,
        *,
        prefix: str = "",
        after: str = "",
        limit: int = 0,
        revision: int = 0,
        fresh: bool = True,
    ) -> RecordPage:
        """A page by the options of `Backend.list`."""
        at = revision or self.revision
        if at != self.revision:
            self._require(name, at)
        bucket = self._buckets.get(name)
        if bucket is None:
            return RecordPage((), at, 0)
        since = bucket.changes_after(at)
        if since:
            records, remaining = bucket.span_before(since, prefix, after, limit)
            return RecordPage(records, at, remaining)
        records, remaining = bucket.span(prefix, after, limit)
        return RecordPage(records, at, remaining, None if after or limit else bucket.state)

    def count(self, name: str) -> int:
        bucket = self._buckets.get(name)
        return 0 if bucket is None else len(bucket.records)

    def usage(self, prefix: str) -> StoreUsage:
        under = self._under(prefix)
        return StoreUsage(sum(len(bucket.records) for bucket in under), sum(bucket.bytes for bucket in under))

    def buckets(self, prefix: str) -> Sequence[str]:
        return sorted(bucket.name for bucket in self._under(prefix) if bucket.records)

    def watch(self, name: str, *, after: int, prefix: str) -> HubWatch:
        self._require(name, after)
        bucket = self._buckets.get(name)
        return self.hub.add(name, prefix, () if bucket is None else bucket.changes_after(after))

    def _require(self, name: str, revision: int) -> None:
        """Raises unless every change of the bucket after `revision` is in the history."""
        self.history.expire()
        if revision > self.revision:
            raise RevisionInFuture(f"revision {revision} is ahead of the store's {self.revision}")
        if not self._remembers(name, revision):
            raise RevisionCompacted(f"the history of {name} after revision {revision} is gone in part")

    def _remembers(self, name: str, revision: int) -> bool:
        history = self.history
        if history.dropped_since(name, revision):
            return False
        if revision >= history.compacted:
            return True
        bucket = self._buckets.get(name)
        return bucket is not None and revision >= max(history.barrier, bucket.floor)

    # Buckets

    def _bucket(self, name: str) -> Bucket:
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = Bucket(name, self.history.compacted)
            insort(self._clusters.setdefault(_cluster(name), []), name)
        return bucket

    def _close(self, bucket: Bucket) -> None:
        del self._buckets[bucket.name]
        cluster = _cluster(bucket.name)
        names = self._clusters[cluster]
        del names[bisect_left(names, bucket.name)]
        if not names:
            del self._clusters[cluster]

    def _under(self, prefix: str) -> list[Bucket]:
        if "/" in prefix:
            names: Sequence[str] = self._clusters.get(_cluster(prefix), ())
            return [self._buckets[name] for name in names if name.startswith(prefix)]
        return [bucket for name, bucket in self._buckets.items() if name.startswith(prefix)]

    def _on_forgotten(self, gone: Sequence[Entry]) -> None:
        for name in {entry.bucket for entry in gone if isinstance(entry, Commit)}:
            bucket = self._buckets.get(name)
            if bucket is not None:
                bucket.forget(gone[-1].revision)
                if bucket.idle:
                    self._close(bucket)
        self._forgotten(gone)


def _differences(before: StoreIndex, now: StoreIndex) -> Sequence[Commit]:
    """The removals, then the writes, by revision."""
    removed, written = [], []
    for name in before._buckets.keys() | now._buckets.keys():
        old, new = (each._buckets[name].records if name in each._buckets else {} for each in (before, now))
        removed += [Commit(now.revision, None, record) for key, record in old.items() if key not in new]
        for key, record in new.items():
            was = old.get(key)
            if was is None or was.revision != record.revision or was.value != record.value:
                written.append(Commit(record.revision, record, was))
    return [*removed, *sorted(written, key=lambda change: change.revision)]


def holds(current: StoredRecord | None, expected: int | None, *, removing: bool = False) -> bool:
    """Reports whether a write may proceed: `current` is at `expected` (0: no object; None: any state)."""
    if current is None:
        return not removing and not expected
    return expected is None or expected == current.revision


def check(key: StoreKey, current: StoredRecord | None, expected: int | None, *, removing: bool = False) -> None:
    """Raises Mismatch where the write may not proceed."""
    if not holds(current, expected, removing=removing):
        raise Mismatch(key, current)


def _cluster(name: str) -> str:
    return name.partition("/")[0]
