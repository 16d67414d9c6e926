"""Watches by bucket and prefix, so that a commit only touches those that match.

A watch that waits is one future and a place in a dict; it is woken once per turn of the loop, whatever the number of
changes. A watch with a slow reader collects a backlog up to a bound and then ends with RevisionCompacted; the objects
in the backlog are shared, so a slow reader costs references, not copies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

import msgspec

from hortus.apiserver.store.backend import Commit, RevisionCompacted


class WatchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The backlog beyond which a reader must list again."""

    changes: int = 10_000
    bytes: int = 32 * 1024 * 1024


class HubWatch:
    """One reader; see `backend.Watch`."""

    __slots__ = ("_bucket", "_bytes", "_end", "_hub", "_pending", "_prefix", "_waiter")

    def __init__(self, hub: WatchHub, bucket: str, prefix: str, replay: Sequence[Commit]) -> None:
        self._hub = hub
        self._bucket = bucket
        self._prefix = prefix
        self._pending = [*replay]
        self._bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._end: type[Exception] | None = None

    @property
    def seen(self) -> int:
        return self._pending[0].revision - 1 if self._pending else self._hub.revision()

    def __aiter__(self) -> HubWatch:
        return self

    async def __anext__(self) -> Sequence[Commit]:
        while not self._pending:
            if self._end is not None:
                raise self._end
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        batch, self._pending, self._bytes = self._pending, [], 0
        return batch

    async def aclose(self) -> None:
        self._hub.remove(self._bucket, self._prefix, self)
        self.end(StopAsyncIteration)

    def push(self, change: Commit) -> bool:
        """Hands over one change; False when the reader has fallen too far behind and the watch is ended."""
        self._pending.append(change)
        self._bytes += 0 if change.record is None else len(change.record.value)
        if len(self._pending) > self._hub.limits.changes or self._bytes > self._hub.limits.bytes:
            self._pending = []
            self.end(RevisionCompacted)
            return False
        self._wake()
        return True

    def end(self, reason: type[Exception]) -> None:
        if self._end is None:
            self._end = reason
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Listeners:
    """The watches of one bucket by prefix, and their number per length of prefix."""

    __slots__ = ("by_prefix", "lengths")

    def __init__(self) -> None:
        self.by_prefix: dict[str, dict[HubWatch, None]] = {}
        self.lengths: dict[int, int] = {}


class WatchHub:
    def __init__(self, limits: WatchLimits, revision: Callable[[], int]) -> None:
        self.limits = limits
        self.revision = revision
        self._buckets: dict[str, _Listeners] = {}

    def __len__(self) -> int:
        return sum(1 for _ in self._all(""))

    def add(self, bucket: str, prefix: str, replay: Sequence[Commit]) -> HubWatch:
        watch = HubWatch(self, bucket, prefix, [change for change in replay if change.name.startswith(prefix)])
        listeners = self._buckets.get(bucket)
        if listeners is None:
            listeners = self._buckets[bucket] = _Listeners()
        listeners.by_prefix.setdefault(prefix, {})[watch] = None
        listeners.lengths[len(prefix)] = listeners.lengths.get(len(prefix), 0) + 1
        return watch

    def remove(self, bucket: str, prefix: str, watch: HubWatch) -> None:
        listeners = self._buckets.get(bucket)
        if listeners is None or watch not in listeners.by_prefix.get(prefix, ()):
            return
        del listeners.by_prefix[prefix][watch]
        if not listeners.by_prefix[prefix]:
            del listeners.by_prefix[prefix]
        listeners.lengths[len(prefix)] -= 1
        if not listeners.lengths[len(prefix)]:
            del listeners.lengths[len(prefix)]
        if not listeners.by_prefix:
            del self._buckets[bucket]

    def publish(self, change: Commit) -> None:
        listeners = self._buckets.get(change.bucket)
        if listeners is None:
            return
        name = change.name
        lost = [
            (prefix, watch)
            for prefix in [name[:length] for length in listeners.lengths]
            for watch in listeners.by_prefix.get(prefix, ())
            if not watch.push(change)
        ]
        for prefix, watch in lost:
            self.remove(change.bucket, prefix, watch)

    def end(self, prefix: str, reason: type[Exception]) -> None:
        """Ends the watches of all buckets with `prefix`; pending changes are still delivered."""
        for bucket, watched, watch in [*self._all(prefix)]:
            self.remove(bucket, watched, watch)
            watch.end(reason)

    def _all(self, prefix: str) -> Iterator[tuple[str, str, HubWatch]]:
        for bucket, listeners in self._buckets.items():
            if bucket.startswith(prefix):
                for watched, watches in listeners.by_prefix.items():
                    for watch in watches:
                        yield bucket, watched, watch
