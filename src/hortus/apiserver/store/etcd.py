"""The store of several API servers at once: objects in etcd v3, read from an index in memory that a watch feeds.

`_keyspace` describes the layout in etcd.

**Writes** are transactions that compare the object's mod_revision. A write returns when this process's own watch has
delivered it. **Reads** ask etcd for the revision of `last`, wait until the index has it and answer from there: all
servers see the acknowledged writes of each. Reads that arrive while one such request is in flight share the next. Pages
of snapshots that are older than this process are read from etcd.

A start reads the oldest state that etcd still has, and later changes by the watch, so it has the history, too.

**History** is compacted in etcd every `HistoryLimits.seconds`, for the whole of that etcd: it should be Hortus' own.

Limits: all objects must fit in memory; an object must fit in etcd's request (1.5 MiB).
"""

from __future__ import annotations

import asyncio
import heapq
import ssl
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from itertools import groupby
from typing import Unpack

from hortus.apiserver.store._etcdwire import EtcdLogin, EtcdWire, Message, OutOfRange, number, raw, span, text
from hortus.apiserver.store._history import HistoryLimits
from hortus.apiserver.store._index import StoreIndex
from hortus.apiserver.store._keyspace import (
    DROP,
    FINAL,
    FORMAT,
    Keyspace,
    packed,
    revision_is,
    spliced,
    writing,
)
from hortus.apiserver.store._watches import WatchLimits
from hortus.apiserver.store.backend import (
    Commit,
    Follower,
    ListOptions,
    Mismatch,
    RecordPage,
    RevisionCompacted,
    StoredRecord,
    StoreFailed,
    StoreKey,
    StoreUsage,
    StoreWatch,
    Value,
)
from hortus.kube.clock import Clock, SystemClock

_PAGE = 500
"""Objects in one answer while loading: at most 750 MiB if all are as large as etcd allows, usually a megabyte."""
_DELIVERY_SECONDS = 5.0
"""Seconds for which a committed write may be missing in the watch before the watch counts as dead."""
_RETRY_SECONDS = 0.5
_CHECK_SECONDS = 2.0
"""Seconds for which a health check waits for etcd."""


class EtcdBackend:
    """A `Backend` on one etcd cluster, shared with the other processes that are given the same `root`."""

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        root: str = "/hortus/",
        tls: ssl.SSLContext | None = None,
        login: EtcdLogin | None = None,
        clock: Clock | None = None,
        history: HistoryLimits | None = None,
        watches: WatchLimits | None = None,
    ) -> None:
        self._wire = EtcdWire(endpoints, tls, login)
        self._clock = clock or SystemClock()
        self._history = history or HistoryLimits()
        self._watches = watches or WatchLimits()
        self._index = self._empty()
        self._space = Keyspace(root)
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._asked: asyncio.Task[int] | None = None
        self._asking: asyncio.Task[int] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def _empty(self) -> StoreIndex:
        return StoreIndex(self._clock, history=self._history, watches=self._watches)

    # Life

    async def start(self) -> None:
        await self._wire.start()
        try:
            await self._check_format()
            await self._load(past=True)
            self._tasks = [asyncio.create_task(work) for work in (self._follow(), self._compact_regularly())]
            await self._catch_up()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        tasks = [*self._tasks, *(task for task in (self._asked, self._asking) if task is not None)]
        self._tasks = []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._wire.close()
        self._index.hub.end("", StopAsyncIteration)

    async def _check_format(self) -> None:
        where = self._space.format
        new = {"key": text(where), "target": "VERSION", "result": "EQUAL", "version": 0}
        look = {"request_range": {"key": text(where)}}
        answer = await self._write({"compare": [new], "success": [writing(where, FORMAT)], "failure": [look]})
        if not answer.get("succeeded"):
            found = raw(answer["responses"][0]["response_range"]["kvs"][0], "value")
            if found != FORMAT:
                raise StoreFailed(
                    f"the state below {self._space.root.decode()} in etcd is of version "
                    f"{found.decode(errors='replace')}; this Hortus reads version {FORMAT.decode()}: "
                    "use the Hortus that wrote it, or another root"
                )

    async def _load(self, *, past: bool = False) -> None:
        """Reads everything at one revision into a new index; watches of the old one end.

        With `past`, at the oldest revision that etcd and the limits keep: later changes come by the watch and make a
        history, so that clients' watches continue after a restart.
        """
        while True:
            try:
                records, revision = await self._snapshot(await self._oldest() if past else 0)
                break
            except OutOfRange:
                continue  # compacted during the read; the next attempt begins at a newer revision
        index = self._empty()
        for record in sorted(records, key=lambda kept: kept.revision):
            index.commit(Commit(record.revision, record, None))
        index.revision = revision
        index.compact(revision)
        before, self._index = self._index, index
        before.hand_over(index)
        before.hub.end("", RevisionCompacted)

    async def _oldest(self) -> int:
        """A revision that can be read and watched from, at most as many revisions back as the history keeps changes."""
        where = {"key": text(self._space.last)}
        answer = await self._wire.call("/v3/kv/range", where)
        oldest = max(number(answer["header"], "revision") - self._history.changes, 1)
        try:
            await self._wire.call("/v3/kv/range", {**where, "revision": oldest})
        except OutOfRange:
            # Only a watch reports the compacted revision.
            async with aclosing(self._wire.watch({**where, "start_revision": oldest})) as messages:
                async for message in messages:
                    if message.get("canceled"):
                        return number(message, "compact_revision")
        return oldest

    async def _catch_up(self) -> None:
        """Returns when the watch has delivered everything committed before; raises StoreFailed when it is silent."""
        while True:
            before = self._index.revision
            answer = await self._wire.call("/v3/kv/range", {"key": text(self._space.last)})
            last: Message = next(iter(answer.get("kvs", [])), {})
            try:
                await self._reach(number(last, "mod_revision"))
                # Every write of Hortus touches `last`, so nothing else is due up to the answer's revision.
                self._index.revision = max(self._index.revision, number(answer["header"], "revision"))
                return
            except StoreFailed:
                if self._index.revision == before:
                    raise

    async def _snapshot(self, revision: int) -> tuple[list[StoredRecord], int]:
        records: list[StoredRecord] = []
        query: Message = {**span(self._space.objects), "limit": _PAGE, **({"revision": revision} if revision else {})}
        while True:
            answer = await self._wire.call("/v3/kv/range", query)
            query.setdefault("revision", answer["header"]["revision"])
            entries = answer.get("kvs", [])
            records += self._space.records(entries)
            if not answer.get("more"):
                return records, int(query["revision"])
            query["key"] = text(raw(entries[-1], "key") + b"\0")

    # Following

    async def _follow(self) -> None:
        while True:
            query = {**span(self._space.root), "start_revision": self._index.revision + 1}
            try:
                async with aclosing(self._wire.watch(query)) as messages:
                    async for message in messages:
                        if message.get("canceled"):
                            await self._resume(message)
                            break
                        if not self._apply(message.get("events", ())):
                            await self._load()
                            break
            except (StoreFailed, OutOfRange):
                await self._clock.sleep(_RETRY_SECONDS)
            self._wake()

    async def _resume(self, cancellation: Message) -> None:
        """Loads from scratch if a compaction removed changes that the index has not seen; StoreFailed for other
        cancellations."""
        kept = number(cancellation, "compact_revision")
        if not kept:
            raise StoreFailed(f"etcd ended the watch: {cancellation.get('cancel_reason', 'no reason given')}")
        # A watch that etcd has not begun yet asks for revisions that the index may have passed in the meantime.
        if kept > self._index.revision + 1:
            await self._load()

    def _apply(self, events: Iterable[Message]) -> bool:
        """Reports whether the events are complete; those before a gap are applied."""
        for revision, group in groupby(events, key=lambda event: number(event["kv"], "mod_revision")):
            if revision > self._index.revision:
                if not self._commit(revision, [*group]):
                    return False
                self._index.revision = revision
        self._wake()
        return True

    def _commit(self, revision: int, events: Sequence[Message]) -> bool:
        """Applies one transaction's events; its note in `last` defines how to read the others.

        Returns False for a note without the write that it belongs to: a deletion at the very revision of a compaction,
        which older releases of etcd leave out of later watches (etcd-io/etcd, issue 18089).
        """
        note = None
        touched: list[Message] = []
        for event in events:
            if raw(event["kv"], "key") == self._space.last:
                note = raw(event["kv"], "value")
            else:
                touched.append(event)
        if note is None:
            note = b""  # of another program, or the version of the layout
        elif not touched and note[:1] != DROP:
            return False
        if note[:1] == DROP:
            self._index.drop(note[1:].decode(), revision)
            return True
        final = spliced(note[1:], revision) if note[:1] == FINAL else None
        for event in touched:
            self._change(event, revision, final)
        return True

    def _change(self, event: Message, revision: int, final: bytes | None) -> None:
        key = self._space.key(event["kv"])
        if key is None:
            return
        before = self._index.get(key)
        if event.get("type") == "DELETE":
            if before is not None:
                self._index.commit(Commit(revision, None, before, final))
            return
        for record in self._space.records([event["kv"]]):
            kept = self._index.keep(key, record.value, revision, before)
            self._index.commit(Commit(revision, kept, before))

    def _wake(self) -> None:
        while self._waiters and self._waiters[0][0] <= self._index.revision:
            _, _, waiter = heapq.heappop(self._waiters)
            if not waiter.done():
                waiter.set_result(None)

    async def _reach(self, revision: int) -> None:
        """Returns when the index has seen `revision`."""
        if revision <= self._index.revision:
            return
        waiter = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiters, (revision, id(waiter), waiter))
        try:
            async with asyncio.timeout(_DELIVERY_SECONDS):
                await waiter
        except TimeoutError:
            self._wire.cut()
            raise StoreFailed(
                f"etcd has revision {revision}, the watch has only delivered {self._index.revision}; it restarts"
            ) from None

    # Writing

    async def put(self, key: StoreKey, value: Value, *, expected: int | None) -> StoredRecord:
        where = self._space.path(key)
        compare = [] if expected is None else [revision_is(where, expected)]
        answer = await self._transact(key, compare, [writing(where, packed(value)), writing(self._space.last, b"")])
        revision = number(answer["header"], "revision")
        await self._reach(revision)
        return StoredRecord(key.bucket, key.name, value.at(revision), revision)

    async def delete(self, key: StoreKey, *, expected: int | None, final: Value | None = None) -> int:
        where = self._space.path(key)
        compare: list[Message] = [{"key": text(where), "target": "VERSION", "result": "GREATER", "version": 0}]
        if expected is not None:
            compare.append(revision_is(where, expected))
        note = b"" if final is None else FINAL + packed(final)
        remove = {"request_delete_range": {"key": text(where)}}
        answer = await self._transact(key, compare, [remove, writing(self._space.last, note)])
        revision = number(answer["header"], "revision")
        await self._reach(revision)
        return revision

    async def _transact(self, key: StoreKey, compare: list[Message], write: list[Message]) -> Message:
        """The answer of a successful transaction; raises Mismatch, once readers can see the other state."""
        look = [{"request_range": {"key": text(where)}} for where in (self._space.path(key), self._space.last)]
        body = {"compare": compare, "success": write, "failure": look}
        answer = await self._write(body)
        if answer.get("succeeded"):
            return answer
        kept, last = (response["response_range"].get("kvs", []) for response in answer["responses"])
        await self._reach(number(last[0], "mod_revision") if last else 0)
        raise Mismatch(key, next(iter(self._space.records(kept)), None))

    async def drop(self, prefix: str, *, guard: StoreKey | None = None, expected: int = 0) -> int:
        remove = {"request_delete_range": span(self._space.objects + prefix.encode())}
        compare = [] if guard is None else [revision_is(self._space.path(guard), expected)]
        write = [remove, writing(self._space.last, DROP + prefix.encode())]
        answer = await self._transact(guard or StoreKey(prefix, ""), compare, write)
        await self._reach(number(answer["header"], "revision"))
        return number(answer["responses"][0]["response_delete_range"], "deleted")

    async def _write(self, body: Message) -> Message:
        try:
            return await self._wire.call("/v3/kv/txn", body)
        except OutOfRange as error:
            raise StoreFailed(f"etcd refused: {error}") from error

    async def compact(self, revision: int) -> None:
        if revision > self._index.revision:
            await self.sync()
        self._index.compact(revision)
        await self._compact_etcd(revision)

    async def _compact_regularly(self) -> None:
        while True:
            revision = self._index.revision
            await self._clock.sleep(self._history.seconds)
            try:
                await self._compact_etcd(revision)
            except StoreFailed:
                continue  # the next round compacts more

    async def _compact_etcd(self, revision: int) -> None:
        try:
            await self._wire.call("/v3/kv/compaction", {"revision": revision})
        except OutOfRange:
            return  # another server was first

    # Reading

    @property
    def revision(self) -> int:
        return self._index.revision

    async def check(self) -> None:
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                await self.sync()
        except TimeoutError:
            raise StoreFailed(f"etcd has not answered within {_CHECK_SECONDS:.0f} s") from None

    def follow(self, follower: Follower, dropped: Callable[[str], None]) -> None:
        self._index.follow(follower, dropped)

    @property
    def compacted(self) -> int:
        return self._index.history.compacted

    async def sync(self) -> int:
        # A request in flight may have been answered before this caller's time: join the next one.
        if self._asked is None:
            self._asked = asyncio.create_task(self._ask(self._asking))
            self._asked.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._asked)

    async def _ask(self, before: asyncio.Task[int] | None) -> int:
        if before is not None and not before.done():
            await asyncio.wait((before,))
        self._asking, self._asked = self._asked, None
        seen = self._index.revision  # read now: the watch may deliver newer changes before the answer comes
        answer = await self._wire.call("/v3/kv/range", {"key": text(self._space.last)})
        entries = answer.get("kvs", [])
        if number(answer["header"], "revision") < seen:
            await self._load()  # etcd was restored from a backup
            self._wire.cut()
        await self._reach(number(entries[0], "mod_revision") if entries else 0)
        return self._index.revision

    async def get(self, key: StoreKey, *, fresh: bool = True) -> StoredRecord | None:
        if fresh:
            await self.sync()
        return self._index.get(key)

    async def list(self, bucket: str, **options: Unpack[ListOptions]) -> RecordPage:
        revision = options.get("revision", 0)
        if options.get("fresh", True) and (not revision or revision > self._index.revision):
            await self.sync()
        try:
            return self._index.page(bucket, **options)
        except RevisionCompacted:
            if self._index.history.dropped_since(bucket, revision):
                raise
            return await self._page_of_the_past(bucket, revision, options)

    async def _page_of_the_past(self, bucket: str, revision: int, options: ListOptions) -> RecordPage:
        prefix, after = options.get("prefix", ""), options.get("after", "")
        query = {
            **span(self._space.path(StoreKey(bucket, prefix))),
            "revision": revision,
            "limit": options.get("limit", 0),
        }
        if after >= prefix:
            query["key"] = text(self._space.path(StoreKey(bucket, after)) + b"\0")
        try:
            answer = await self._wire.call("/v3/kv/range", query)
        except OutOfRange as error:
            raise RevisionCompacted(f"revision {revision} is gone from etcd, too") from error
        entries = answer.get("kvs", [])
        return RecordPage(self._space.records(entries), revision, number(answer, "count") - len(entries))

    async def count(self, bucket: str) -> int:
        await self.sync()
        return self._index.count(bucket)

    async def buckets(self, prefix: str) -> Sequence[str]:
        await self.sync()
        return self._index.buckets(prefix)

    async def usage(self, prefix: str) -> StoreUsage:
        await self.sync()
        return self._index.usage(prefix)

    def watch(self, bucket: str, *, after: int, prefix: str = "") -> StoreWatch:
        return self._index.watch(bucket, after=after, prefix=prefix)
