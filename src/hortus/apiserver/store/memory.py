"""The store of tests and of `--ephemeral`: everything in memory, lost at exit."""

from __future__ import annotations

from hortus.apiserver.store._history import HistoryLimits
from hortus.apiserver.store._index import StoreIndex, check
from hortus.apiserver.store._reading import IndexReads
from hortus.apiserver.store._watches import WatchLimits
from hortus.apiserver.store.backend import Commit, StoredRecord, StoreKey, Value
from hortus.kube.clock import Clock, SystemClock


class MemoryBackend(IndexReads):
    """A `Backend` that forgets at exit. A write commits at once, within the call."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        history: HistoryLimits | None = None,
        watches: WatchLimits | None = None,
    ) -> None:
        self._index = StoreIndex(
            clock or SystemClock(), history=history or HistoryLimits(), watches=watches or WatchLimits()
        )

    async def start(self) -> None:
        """Has no effect: there is no file."""

    async def close(self) -> None:
        self._index.hub.end("", StopAsyncIteration)

    async def check(self) -> None:
        """Memory accepts every write."""

    async def put(self, key: StoreKey, value: Value, *, expected: int | None) -> StoredRecord:
        index = self._index
        current = index.get(key)
        check(key, current, expected)
        revision = index.revision + 1
        record = index.keep(key, value.at(revision), revision, current)
        index.commit(Commit(revision, record, current))
        return record

    async def delete(self, key: StoreKey, *, expected: int | None, final: Value | None = None) -> int:
        index = self._index
        current = index.get(key)
        check(key, current, expected, removing=True)
        revision = index.revision + 1
        index.commit(Commit(revision, None, current, None if final is None else final.at(revision)))
        return revision

    async def drop(self, prefix: str, *, guard: StoreKey | None = None, expected: int = 0) -> int:
        if guard is not None:
            check(guard, self._index.get(guard), expected)
        return self._index.drop(prefix, self._index.revision + 1)

    async def compact(self, revision: int) -> None:
        self._index.compact(revision)
