"""The index of an etcd's objects in memory: loaded at one revision, then fed by a watch.

Each transaction of Hortus writes the key `last`, whose value is a note that says how to read the other events.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from itertools import groupby

from hortus.apiserver.store._history import HistoryLimits
from hortus.apiserver.store._index import StoreIndex
from hortus.apiserver.store._keyspace import DROP, FINAL, Keyspace, spliced
from hortus.apiserver.store._storewire import StoreWire
from hortus.apiserver.store._watches import WatchLimits
from hortus.apiserver.store.backend import Commit, RevisionCompacted, StoredRecord, StoreFailed
from hortus.etcd.wire import Message, OutOfRange, number, raw, span, text
from hortus.kube.clock import Clock

_PAGE = 500
"""Objects in one answer while loading: at most 750 MiB if all are as large as etcd allows, usually a megabyte."""
_DELIVERY_SECONDS = 5.0
"""Seconds for which a committed write may be missing in the watch before the watch counts as dead."""
_RETRY_SECONDS = 0.5


class IndexFeed:
    """Keeps `index` at the state of etcd below one root."""

    def __init__(
        self, wire: StoreWire, space: Keyspace, clock: Clock, *, history: HistoryLimits, watches: WatchLimits
    ) -> None:
        self._wire = wire
        self._space = space
        self._clock = clock
        self._history = history
        self._watches = watches
        self.index = self._empty()
        """Another one after each load."""
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []

    def _empty(self) -> StoreIndex:
        return StoreIndex(self._clock, history=self._history, watches=self._watches)

    async def load(self, *, past: bool = False) -> None:
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
        before, self.index = self.index, index
        before.hand_over(index)
        before.hub.end("", RevisionCompacted)

    async def _oldest(self) -> int:
        """A revision that can be read and watched from, at most as many revisions back as the history keeps changes.

        0, the present, where nothing was ever written: etcd lets a watch of the past wait for a tenth of a second.
        """
        where = {"key": text(self._space.last)}
        answer = await self._wire.call("/v3/kv/range", where)
        if not answer.get("kvs"):
            return 0
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

    async def catch_up(self) -> None:
        """Returns when the watch has delivered everything committed before; raises StoreFailed when it is silent."""
        while True:
            before = self.index.revision
            answer = await self._wire.call("/v3/kv/range", {"key": text(self._space.last)})
            last: Message = next(iter(answer.get("kvs", [])), {})
            try:
                await self.reach(number(last, "mod_revision"))
                # Every write of Hortus touches `last`, so nothing else is due up to the answer's revision.
                self.index.revision = max(self.index.revision, number(answer["header"], "revision"))
                return
            except StoreFailed:
                if self.index.revision == before:
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

    async def follow(self) -> None:
        while True:
            query = {**span(self._space.root), "start_revision": self.index.revision + 1}
            try:
                async with aclosing(self._wire.watch(query)) as messages:
                    async for message in messages:
                        if message.get("canceled"):
                            await self._resume(message)
                            break
                        if not self._apply(message.get("events", ())):
                            await self.load()
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
        if kept > self.index.revision + 1:
            await self.load()

    def _apply(self, events: Iterable[Message]) -> bool:
        """Reports whether the events are complete; those before a gap are applied."""
        for revision, group in groupby(events, key=lambda event: number(event["kv"], "mod_revision")):
            if revision > self.index.revision:
                if not self._commit(revision, [*group]):
                    return False
                self.index.revision = revision
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
            self.index.drop(note[1:].decode(), revision)
            return True
        final = spliced(note[1:], revision) if note[:1] == FINAL else None
        for event in touched:
            self._change(event, revision, final)
        return True

    def _change(self, event: Message, revision: int, final: bytes | None) -> None:
        key = self._space.key(event["kv"])
        if key is None:
            return
        before = self.index.get(key)
        if event.get("type") == "DELETE":
            if before is not None:
                self.index.commit(Commit(revision, None, before, final))
            return
        for record in self._space.records([event["kv"]]):
            kept = self.index.keep(key, record.value, revision, before)
            self.index.commit(Commit(revision, kept, before))

    def _wake(self) -> None:
        while self._waiters and self._waiters[0][0] <= self.index.revision:
            _, _, waiter = heapq.heappop(self._waiters)
            if not waiter.done():
                waiter.set_result(None)

    async def reach(self, revision: int) -> None:
        """Returns when the index has seen `revision`."""
        if revision <= self.index.revision:
            return
        waiter = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiters, (revision, id(waiter), waiter))
        try:
            async with asyncio.timeout(_DELIVERY_SECONDS):
                await waiter
        except TimeoutError:
            self._wire.cut()
            raise StoreFailed(
                f"etcd has revision {revision}, the watch has only delivered {self.index.revision}; it restarts"
            ) from None
