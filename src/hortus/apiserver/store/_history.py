"""The history of a store: enough to continue a paged list and to resume a watch, within bounds.

Every change is held twice: in its bucket, for readers, and here in order of revision, for the next removal. A current
value costs the history nothing; a replaced one is counted at its replacement. An eighth is removed at a time, so that
one commit in thousands pays for it. Age is checked at writes and reads; an idle store runs no timer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from hortus.apiserver.store.backend import Commit, StoredRecord
from hortus.kube.clock import Clock

_ENTRY_BYTES = 120
"""Bytes of a change without its values: the struct and its two places (measured on CPython 3.11)."""


class HistoryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the history; the first that is reached applies. 300 s is the compaction interval of kube-apiserver
    (`--etcd-compaction-interval`)."""

    changes: int = 50_000
    bytes: int = 32 * 1024 * 1024
    seconds: float = 300.0


class BucketDrop(msgspec.Struct, frozen=True, gc=False):
    """All buckets with `prefix` were dropped at `revision`; `dropped` are the revisions they held."""

    revision: int
    prefix: str
    dropped: Sequence[int]


Entry = Commit | BucketDrop


class _Slot:
    """All entries of a sixteenth of the age limit, up to `revision`; written before `until`."""

    __slots__ = ("revision", "until")

    def __init__(self, until: float, revision: int) -> None:
        self.until = until
        self.revision = revision


class History:
    def __init__(self, limits: HistoryLimits, clock: Clock, *, forgotten: Callable[[Sequence[Entry]], None]) -> None:
        self.compacted = 0
        """History above this revision is complete in every bucket."""
        self.barrier = 0
        """History up to this revision is missing in every bucket: an explicit compaction, or a start without
        history."""
        self._limits = limits
        self._clock = clock
        self._forgotten = forgotten
        self._order: deque[Entry] = deque()
        self._slots: deque[_Slot] = deque()
        self._drops: deque[BucketDrop] = deque()
        self._bytes = 0

    def add(self, entry: Entry) -> None:
        self._order.append(entry)
        self._bytes += _cost(entry)
        if isinstance(entry, BucketDrop):
            self._drops.append(entry)
        now = self._clock.monotonic()
        if self._slots and now < self._slots[-1].until:
            self._slots[-1].revision = entry.revision
        else:
            self._slots.append(_Slot(now + self._limits.seconds / 16, entry.revision))
        if len(self._order) > self._limits.changes or self._bytes > self._limits.bytes:
            self._shrink()
        elif now - self._slots[0].until > self._limits.seconds:
            self.expire()

    def expire(self) -> None:
        """Removes entries older than the limit in seconds, to a sixteenth of it."""
        oldest = self._clock.monotonic() - self._limits.seconds
        revision = 0
        while self._slots and self._slots[0].until < oldest:
            revision = self._slots.popleft().revision
        if revision > self.compacted:
            self.forget(revision)

    def dropped_since(self, bucket: str, revision: int) -> bool:
        """Reports whether the bucket was dropped after `revision`."""
        return any(drop.revision > revision and bucket.startswith(drop.prefix) for drop in self._drops)

    def forget(self, revision: int) -> None:
        gone: list[Entry] = []
        while self._order and self._order[0].revision <= revision:
            entry = self._order.popleft()
            self._bytes -= _cost(entry)
            gone.append(entry)
        while self._drops and self._drops[0].revision <= revision:
            self._drops.popleft()
        self.compacted = max(self.compacted, revision)
        if gone:
            self._forgotten(gone)

    def _shrink(self) -> None:
        keep_changes, keep_bytes = self._limits.changes * 7 // 8, self._limits.bytes * 7 // 8
        count, size, revision = len(self._order), self._bytes, self.compacted
        for entry in self._order:
            if count <= keep_changes and size <= keep_bytes:
                break
            count, size, revision = count - 1, size - _cost(entry), entry.revision
        self.forget(revision)


def _cost(entry: Entry) -> int:
    if isinstance(entry, BucketDrop):
        return _ENTRY_BYTES + 40 * len(entry.dropped)
    replaced: StoredRecord | None = entry.replaced
    kept = 0 if replaced is None else len(replaced.value)
    return _ENTRY_BYTES + kept + (0 if entry.final is None else len(entry.final))
