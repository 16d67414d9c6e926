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
import ssl
from collections.abc import Callable, Sequence
from typing import Unpack

from hortus.apiserver.store._etcdindex import IndexFeed
from hortus.apiserver.store._history import HistoryLimits
from hortus.apiserver.store._index import StoreIndex
from hortus.apiserver.store._keyspace import (
    DROP,
    FINAL,
    FORMAT,
    Keyspace,
    packed,
    revision_is,
    writing,
)
from hortus.apiserver.store._storewire import StoreWire, WriteUnsettled
from hortus.apiserver.store._watches import WatchLimits
from hortus.apiserver.store.backend import (
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
from hortus.etcd.wire import EtcdLogin, Message, OutOfRange, number, raw, span, text
from hortus.kube.clock import Clock, SystemClock

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
        self._wire = StoreWire(endpoints, tls, login)
        self._clock = clock or SystemClock()
        self._history = history or HistoryLimits()
        self._space = Keyspace(root)
        self._feed = IndexFeed(
            self._wire, self._space, self._clock, history=self._history, watches=watches or WatchLimits()
        )
        self._asked: asyncio.Task[int] | None = None
        self._asking: asyncio.Task[int] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def _index(self) -> StoreIndex:
        return self._feed.index

    # Life

    async def start(self) -> None:
        await self._wire.start()
        try:
            await self._check_format()
            await self._feed.load(past=True)
            self._tasks = [asyncio.create_task(work) for work in (self._feed.follow(), self._compact_regularly())]
            await self._feed.catch_up()
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

    # Writing

    async def put(self, key: StoreKey, value: Value, *, expected: int | None) -> StoredRecord:
        where, content = self._space.path(key), packed(value)
        compare = [] if expected is None else [revision_is(where, expected)]
        leaves = None if expected is None else [content]
        write = [writing(where, content), writing(self._space.last, b"")]
        answer = await self._transact(key, compare, write, leaves=leaves)
        revision = number(answer["header"], "revision")
        await self._feed.reach(revision)
        return StoredRecord(key.bucket, key.name, value.at(revision), revision)

    async def delete(self, key: StoreKey, *, expected: int | None, final: Value | None = None) -> int:
        where = self._space.path(key)
        compare: list[Message] = [{"key": text(where), "target": "VERSION", "result": "GREATER", "version": 0}]
        if expected is not None:
            compare.append(revision_is(where, expected))
        note = b"" if final is None else FINAL + packed(final)
        remove = {"request_delete_range": {"key": text(where)}}
        leaves: list[bytes] | None = None if expected is None else []
        answer = await self._transact(key, compare, [remove, writing(self._space.last, note)], leaves=leaves)
        revision = number(answer["header"], "revision")
        await self._feed.reach(revision)
        return revision

    async def _transact(
        self, key: StoreKey, compare: list[Message], write: list[Message], *, leaves: list[bytes] | None = None
    ) -> Message:
        """The answer of a successful transaction; raises Mismatch, once readers can see the other state.

        A write with `leaves`, which compares the revision and leaves this content or none, is sent once more where it
        is unsettled: of the two, one at most is carried out. Raises WriteUnsettled where another write came between.
        """
        look = [{"request_range": {"key": text(where)}} for where in (self._space.path(key), self._space.last)]
        body = {"compare": compare, "success": write, "failure": look}
        unsettled: WriteUnsettled | None = None
        try:
            answer = await self._write(body)
        except WriteUnsettled as error:
            if leaves is None:
                raise
            unsettled, answer = error, await self._write(body)
        if answer.get("succeeded"):
            return answer
        kept, last = (response["response_range"].get("kvs", []) for response in answer["responses"])
        if unsettled is not None:
            if [raw(one, "value") for one in kept] != leaves:
                raise unsettled
            return {"header": {"revision": number((kept or last)[0], "mod_revision")}}
        await self._feed.reach(number(last[0], "mod_revision") if last else 0)
        raise Mismatch(key, next(iter(self._space.records(kept)), None))

    async def drop(self, prefix: str, *, guard: StoreKey | None = None, expected: int = 0) -> int:
        remove = {"request_delete_range": span(self._space.objects + prefix.encode())}
        compare = [] if guard is None else [revision_is(self._space.path(guard), expected)]
        dropped = prefix.encode()
        write = [remove, writing(self._space.last, DROP + dropped), writing(self._space.drops + dropped, b"")]
        answer = await self._transact(guard or StoreKey(prefix, ""), compare, write)
        await self._feed.reach(number(answer["header"], "revision"))
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
            await self._feed.load()  # etcd was restored from a backup
            self._wire.cut()
        await self._feed.reach(number(entries[0], "mod_revision") if entries else 0)
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
            if await self._dropped_since(bucket, revision):
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

    async def _dropped_since(self, bucket: str, revision: int) -> bool:
        """Reports whether the bucket was dropped after `revision`, however long ago: the history forgets it."""
        cluster = self._space.drops + bucket.partition("/")[0].encode() + b"/"
        answer = await self._wire.call("/v3/kv/range", span(cluster))
        where = self._space.drops + bucket.encode()
        return any(
            where.startswith(raw(one, "key")) and number(one, "mod_revision") > revision
            for one in answer.get("kvs", ())
        )

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
