"""Expiry of Events: an Event is deleted an hour after its last write, as by kube-apiserver's `--event-ttl`.

kube-apiserver gives each write of an Event a lease in etcd. Here one queue and one timer serve all logical clusters and
every store: each commit of an Event is appended with its expiry, so the queue is always in order. At the expiry, an
Event that has not been written since is deleted, and watchers see DELETED. Several servers on one store all do so; a
deletion is bound to the revision, so each happens once. After a start the expiry follows from the object's own times.
About 200 bytes per Event; deletions come up to a second late.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import NamedTuple

import orjson

from hortus.apiserver.resources.kind import cut_revision
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.store.backend import Commit, Mismatch, StoredRecord, StoreFailed, StoreKey
from hortus.kube.clock import Clock, Timer
from hortus.kube.objects import parse_time

_SUFFIX = "core/events"
_BATCH = 200
"""Concurrent deletions, which a store may put into one commit."""
_ROUND = 1.0
"""Seconds for which due deletions are collected."""
_RETRY_SECONDS = 5.0

_log = logging.getLogger("hortus.apiserver.expiry")


class _Due(NamedTuple):
    time: float
    """By the clock's monotonic time."""
    key: StoreKey
    revision: int


class EventExpiry:
    """A part of the server: deletes Events that were not written for `seconds`."""

    def __init__(self, storage: Storage, clock: Clock, seconds: float) -> None:
        self._storage = storage
        self._clock = clock
        self._seconds = seconds
        self._due: deque[_Due] = deque()
        self._timer: Timer | None = None
        self._sweeping: asyncio.Task[None] | None = None
        storage.listen(self._changed, _SUFFIX)

    async def start(self) -> None:
        """Queues the stored Events."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        found = []

        def take(record: StoredRecord) -> None:
            rest = min(max(_written(record) + self._seconds - now, 0.0), self._seconds)
            found.append(_Due(monotonic + rest, record.key, record.revision))

        await self._storage.survey(take, _SUFFIX)
        self._due.extendleft(sorted(found, reverse=True))
        self._arm()

    async def stop(self) -> None:
        """Stops; the next start queues the remaining Events again."""
        if self._timer is not None:
            self._timer.cancel()
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)

    def _changed(self, change: Commit) -> None:
        if change.record is not None:
            self._due.append(_Due(self._clock.monotonic() + self._seconds, change.record.key, change.revision))
            self._arm()

    def _arm(self, wait: float = _ROUND) -> None:
        if self._timer is None and self._sweeping is None and self._due:
            rest = max(self._due[0].time - self._clock.monotonic(), 0.0)
            self._timer = self._clock.call_later(rest + wait, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._sweeping = asyncio.get_running_loop().create_task(self._sweep(), name="event-expiry")

    async def _sweep(self) -> None:
        wait = _ROUND
        try:
            while batch := self._take():
                try:
                    await asyncio.gather(*(self._delete(due) for due in batch))
                except StoreFailed as error:
                    _log.debug("events stay until the store takes their deletion", extra={"error": str(error)})
                    self._due.extendleft(reversed(batch))
                    wait = _RETRY_SECONDS
                    break
                except Exception:
                    # An Event that cannot be deleted stays; those of all clusters behind it come with the next batches.
                    _log.exception("an event cannot be deleted when its time is over")
        finally:
            self._sweeping = None
        self._arm(wait)

    def _take(self) -> list[_Due]:
        now = self._clock.monotonic()
        batch: list[_Due] = []
        while self._due and self._due[0].time <= now and len(batch) < _BATCH:
            batch.append(self._due.popleft())
        return batch

    async def _delete(self, due: _Due) -> None:
        record = await self._storage.get(due.key, fresh=False)
        if record is None or record.revision != due.revision:
            return
        try:
            await self._storage.delete(record, cut_revision(record.value))
        except Mismatch:
            return  # written a moment ago, or another server was first


def _written(record: StoredRecord) -> float:
    """The time of the Event's last write, by its own fields; 0 without any."""
    metadata = orjson.loads(record.value).get("metadata") or {}
    stamps = [metadata.get("creationTimestamp"), *(each.get("time") for each in metadata.get("managedFields") or ())]
    times = []
    for stamp in stamps:
        try:
            times.append(parse_time(stamp))
        except (TypeError, ValueError, AttributeError):
            continue
    return max(times, default=0.0)
