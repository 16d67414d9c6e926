"""The store of one machine: everything in memory to read, every write in an SQLite file before it is acknowledged.

A write is checked against the newest state, pending writes included, gets its revision and joins the queue. One thread
takes what has queued up and commits it in one transaction; meanwhile the next batch gathers (group commit). A write
becomes visible to readers, watchers and its own caller, in order of revision, only when its batch is durable. When a
batch fails, all queued writes fail with it, because later writes were checked against earlier ones. Reads continue, and
the next write tests whether the disk has recovered. Revisions of failed writes are not used again.

History is rows that are not deleted yet, so it survives a restart: a watch resumes where it was. Its age is counted
from the restart.

Limits: everything must fit in memory; one process per file; not on network file systems.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from hortus.apiserver.store._history import BucketDrop, Entry, HistoryLimits
from hortus.apiserver.store._index import StoreIndex, check, holds
from hortus.apiserver.store._log import BATCH_ROWS, DELETE, DROP, PUT, Connect, Log, LogRow, Past, connect
from hortus.apiserver.store._reading import IndexReads
from hortus.apiserver.store._reserve import RESERVE_BYTES
from hortus.apiserver.store._thread import WriterThread
from hortus.apiserver.store._watches import WatchLimits
from hortus.apiserver.store.backend import (
    Commit,
    StoredRecord,
    StoreFailed,
    StoreKey,
    Value,
)
from hortus.kube.clock import Clock, SystemClock

_FORGET_ROWS = 1_000
"""The number of unneeded rows at which they are deleted; the deletion costs one more sync."""


_FAREWELL_BYTES = 16 * 1024
"""Bytes by which a deletion may enlarge an object: a time, a finalizer, a condition; the tombstone of a born one."""

_DISK_ERRORS = (sqlite3.Error, OSError, StoreFailed)
"""Failures of the log; StoreFailed when the file that is opened again turns out to be another one."""


class _Write:
    """A write on its way to the disk. `change` is None for a drop, whose prefix is the row's bucket."""

    __slots__ = ("change", "done", "row", "settled")

    def __init__(self, row: LogRow, change: Commit | None, done: asyncio.Future[int]) -> None:
        self.row = row
        self.change = change
        self.done = done
        self.settled: asyncio.Event | None = None


class SqliteBackend(IndexReads):
    """A `Backend` in one file, `path`, with SQLite's `-wal` and a `.lock` next to it. All have mode 0600."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock | None = None,
        history: HistoryLimits | None = None,
        watches: WatchLimits | None = None,
        connect: Connect = connect,
        must_exist: bool = False,
    ) -> None:
        """`must_exist` refuses a missing or empty file: the caller knows that it held objects."""
        self._index = StoreIndex(
            clock or SystemClock(),
            history=history or HistoryLimits(),
            watches=watches or WatchLimits(),
            forgotten=self._forgotten,
        )
        self._log = Log(path, connect=connect, must_exist=must_exist)
        self._thread = WriterThread("hortus-store")
        self._queue: deque[_Write] = deque()
        self._pending: dict[StoreKey, _Write] = {}
        self._drops: list[_Write] = []
        self._dead: deque[int] = deque()
        self._last = 0
        """The last assigned revision, committed or not."""
        self._noted = Past(0, 0)
        self._committing: asyncio.Task[None] | None = None
        self._open = False

    # Life

    async def start(self) -> None:
        await self._thread.run(self._recover)
        self._open = True

    async def close(self) -> None:
        was_open, self._open = self._open, False
        if self._committing is not None:
            await self._committing
        if was_open:
            await self._thread.run(self._finish)
        self._thread.end()
        self._index.hub.end("", StopAsyncIteration)

    def _recover(self) -> None:
        """Replays the log. Compacted history is replayed too and dropped again, which finds rows left to delete."""
        past = self._log.open()
        index = self._index
        try:
            for row in self._log.rows():
                if row.kind == DROP:
                    index.drop(row.bucket, row.revision)
                else:
                    self._replay(row)
        except StoreFailed:
            self._log.close()
            raise
        index.revision = self._last = past.revision
        self._noted = past
        index.compact(past.compacted)

    def _replay(self, row: LogRow) -> None:
        key = StoreKey(row.bucket, row.name)
        before = self._index.get(key)
        if row.kind == PUT:
            record = self._index.keep(key, row.value or b"", row.revision, before)
            self._index.commit(Commit(row.revision, record, before))
        elif before is not None:
            self._index.commit(Commit(row.revision, None, before, row.value))
        else:
            self._dead.append(row.revision)

    def _finish(self) -> None:
        past = Past(self._last, self._index.history.compacted)
        if past.compacted > self._noted.compacted and not self._log.doubtful:
            # When this fails, the next start finds the same rows again.
            with contextlib.suppress(sqlite3.Error, OSError):
                self._log.forget([*self._dead], past)
        self._log.close()

    # Writing

    async def put(self, key: StoreKey, value: Value, *, expected: int | None) -> StoredRecord:
        current = await self._claim(key, expected, removing=False)
        if self._log.tight and self._open and not _brings_an_end(value, current):
            await self._relax()
            current = await self._claim(key, expected, removing=False)
        revision = self._last + 1
        record = self._index.keep(key, value.at(revision), revision, current)
        row = LogRow(revision, PUT, record.bucket, record.name, record.value)
        await self._submit(row, Commit(revision, record, current))
        return record

    async def delete(self, key: StoreKey, *, expected: int | None, final: Value | None = None) -> int:
        current = await self._claim(key, expected, removing=True)
        revision = self._last + 1
        last_words = None if final is None else final.at(revision)
        # On a full disk, watches that resume after a restart get the object's state from before its deletion.
        row = LogRow(revision, DELETE, key.bucket, key.name, None if self._log.tight else last_words)
        await self._submit(row, Commit(revision, None, current, last_words))
        return revision

    async def drop(self, prefix: str, *, guard: StoreKey | None = None, expected: int = 0) -> int:
        if guard is not None:
            await self._claim(guard, expected, removing=False)
        return await self._submit(LogRow(self._last + 1, DROP, prefix, "", None), None)

    async def compact(self, revision: int) -> None:
        self._index.compact(revision)

    async def _claim(self, key: StoreKey, expected: int | None, *, removing: bool) -> StoredRecord | None:
        """The record that the write replaces. A refusal needs a durable state, so this waits for pending writes and
        checks again."""
        while True:
            pending = self._newest(key)
            if pending is None:
                current = self._index.get(key)
                check(key, current, expected, removing=removing)
                return current
            current = None if pending.change is None else pending.change.record
            if holds(current, expected, removing=removing):
                return current
            if pending.settled is None:
                pending.settled = asyncio.Event()
            await pending.settled.wait()

    def _newest(self, key: StoreKey) -> _Write | None:
        """The last pending write that touches the key."""
        newest = self._pending.get(key)
        for drop in self._drops:
            if key.bucket.startswith(drop.row.bucket) and (newest is None or newest.row.revision < drop.row.revision):
                newest = drop
        return newest

    async def _submit(self, row: LogRow, change: Commit | None) -> int:
        """Queues one write and waits until it is durable and visible; a drop returns the number of removed objects."""
        if not self._open:
            raise StoreFailed(f"the store in {self._log.path} is closed")
        for name in (row.bucket, row.name):
            name.isascii() or name.encode()  # a lone surrogate fails here, instead of failing its whole batch
        write = _Write(row, change, asyncio.get_running_loop().create_future())
        self._last = row.revision
        self._queue.append(write)
        if change is None:
            self._drops.append(write)
        else:
            self._pending[StoreKey(row.bucket, row.name)] = write
        self._wake()
        return await write.done

    def _wake(self) -> None:
        if self._committing is None:
            # The task begins in the next turn of the loop: other writes of this turn go into the same batch.
            self._committing = asyncio.get_running_loop().create_task(self._commit_all())

    async def _commit_all(self) -> None:
        try:
            while self._queue:
                await self._commit([self._queue.popleft() for _ in range(min(len(self._queue), BATCH_ROWS))])
                if len(self._dead) >= _FORGET_ROWS:
                    await self._forget_rows()
                if self._log.tight and not self._queue:
                    await self._make_room()
        finally:
            self._committing = None

    async def _commit(self, batch: Sequence[_Write]) -> None:
        rows = [write.row for write in batch]
        try:
            await self._thread.run(self._log.append, rows)
        except Exception as error:
            # Any failure is raised to the callers, and the log checks the file before it writes again.
            self._fail([*batch, *self._queue], error)
        else:
            for write in batch:
                self._apply(write)

    def _apply(self, write: _Write) -> None:
        result = 0
        if write.change is None:
            result = self._index.drop(write.row.bucket, write.row.revision)
        else:
            self._index.commit(write.change)
        if not write.done.done():
            write.done.set_result(result)
        self._settle(write)

    def _fail(self, writes: Sequence[_Write], error: Exception) -> None:
        self._queue.clear()
        for write in writes:
            if not write.done.done():
                write.done.set_exception(StoreFailed(f"cannot write to {self._log.path}: {error}"))
            self._settle(write)

    def _settle(self, write: _Write) -> None:
        if write.change is None:
            self._drops.remove(write)
        elif self._pending.get(write.change.key) is write:
            del self._pending[write.change.key]
        if write.settled is not None:
            write.settled.set()

    # Forgetting

    def _forgotten(self, gone: Sequence[Entry]) -> None:
        """Notes the unneeded rows, older first, so that an interrupted deletion restores no object."""
        for entry in gone:
            if isinstance(entry, BucketDrop):
                self._dead.extend(entry.dropped)
                self._dead.append(entry.revision)
                continue
            if entry.replaced is not None:
                self._dead.append(entry.replaced.revision)
            if entry.record is None:
                self._dead.append(entry.revision)

    async def _make_room(self) -> None:
        """On a full disk: drops the history, frees its space, and accepts all writes again if that sufficed."""
        self._index.compact(self._index.revision)
        while self._dead:
            if not await self._forget_rows():
                return
        with contextlib.suppress(*_DISK_ERRORS):
            await self._thread.run(self._log.make_room)
            await self._thread.run(self._log.relax)

    async def _relax(self) -> None:
        """Raises StoreFailed while the disk is full."""
        try:
            await self._thread.run(self._log.relax)
        except OSError as error:
            raise StoreFailed(
                f"cannot write to {self._log.path}: {error.strerror}; only deletions are taken until "
                f"{RESERVE_BYTES // 2**20} MiB are free"
            ) from error

    async def _forget_rows(self) -> bool:
        rows = [self._dead.popleft() for _ in range(min(len(self._dead), _FORGET_ROWS))]
        past = Past(self._index.revision, self._index.history.compacted)
        try:
            await self._thread.run(self._log.forget, rows, past)
        except _DISK_ERRORS:
            self._dead.extendleft(reversed(rows))
            return False
        self._noted = past
        return True

    # Health

    async def check(self) -> None:
        """Tests the disk after a failed write; a log without failures needs no test."""
        if not self._open:
            raise StoreFailed(f"the store in {self._log.path} is closed")
        if self._log.doubtful or self._log.tight:
            try:
                await self._thread.run(self._log.probe)
                if self._log.tight:
                    await self._thread.run(self._log.relax)
            except (sqlite3.Error, OSError) as error:
                raise StoreFailed(f"cannot write to {self._log.path}: {error}") from error


def _brings_an_end(value: Value, current: StoredRecord | None) -> bool:
    """Reports whether the write is accepted while the disk is full."""
    grown = len(value.head) + len(value.tail) - (0 if current is None else len(current.value))
    return value.leaving and grown <= _FAREWELL_BYTES
