"""One bucket: its records by name, its names in order, and its part of the history.

Names are sorted at the first list and kept sorted from then on, so a bucket that is only written and read by name pays
nothing for order. The history is None until the first change.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

from hortus.apiserver.store.backend import Commit, StoredRecord

_LAST = chr(0x10FFFF)


class Bucket:
    __slots__ = ("_names", "_state", "bytes", "changes", "floor", "name", "records")

    def __init__(self, name: str, floor: int) -> None:
        self.name = name
        self.records: dict[str, StoredRecord] = {}
        self.bytes = 0
        self.changes: list[Commit] | None = None
        self.floor = floor
        """This bucket's history above this revision is complete."""
        self._names: list[str] | None = None
        self._state: object | None = None

    @property
    def idle(self) -> bool:
        return not self.records and not self.changes

    @property
    def state(self) -> object:
        """The same object until the next change."""
        if self._state is None:
            self._state = object()
        return self._state

    def apply(self, change: Commit) -> None:
        self._state = None
        replaced, record = change.replaced, change.record
        if replaced is not None:
            self.bytes -= len(replaced.value)
        if record is not None:
            self._keep(record, new=replaced is None)
        elif replaced is not None:
            self._remove(replaced.name)
        if self.changes is None:
            self.changes = []
        self.changes.append(change)

    def _keep(self, record: StoredRecord, *, new: bool) -> None:
        self.records[record.name] = record
        self.bytes += len(record.value)
        if new and self._names is not None:
            insort(self._names, record.name)

    def _remove(self, name: str) -> None:
        del self.records[name]
        if self._names is not None:
            del self._names[bisect_left(self._names, name)]

    def changes_after(self, revision: int) -> Sequence[Commit]:
        changes = self.changes
        if not changes or changes[-1].revision <= revision:
            return ()
        return changes[bisect_right(changes, revision, key=_revision) :]

    def forget(self, revision: int) -> None:
        """Drops the history up to and including `revision`."""
        if self.changes:
            gone = bisect_right(self.changes, revision, key=_revision)
            if gone:
                self.floor = self.changes[gone - 1].revision
                del self.changes[:gone]
        if not self.changes:
            self.changes = None

    def span(self, prefix: str, after: str, limit: int) -> tuple[list[StoredRecord], int]:
        """The present records in a range, in order, and the number of further ones beyond `limit`."""
        names, low, high = self._range(prefix, after)
        end = min(high, low + limit) if limit else high
        return list(map(self.records.__getitem__, names[low:end])), high - end

    def span_before(
        self, changes: Sequence[Commit], prefix: str, after: str, limit: int
    ) -> tuple[list[StoredRecord], int]:
        """The same for the state before `changes`, the newest ones of this bucket."""
        then: dict[str, StoredRecord | None] = {}
        for change in changes:
            then.setdefault(change.name, change.replaced)
        names, low, high = self._range(prefix, after)
        view = [name for name in names[low:high] if name not in then]
        view += [name for name, was in then.items() if was and name > after and name.startswith(prefix)]
        view.sort()
        end = limit or len(view)
        return [then.get(name) or self.records[name] for name in view[:end]], max(0, len(view) - end)

    def _range(self, prefix: str, after: str) -> tuple[list[str], int, int]:
        names = self._names
        if names is None:
            names = self._names = sorted(self.records)
        low = bisect_left(names, prefix) if prefix else 0
        if after and after >= prefix:
            low = bisect_right(names, after)
        behind = _behind(prefix)
        high = bisect_left(names, behind) if behind else len(names)
        return names, low, max(low, high)


def _behind(prefix: str) -> str:
    """The least string that sorts after all strings with `prefix`; empty when there is none."""
    head = prefix.rstrip(_LAST)
    return head[:-1] + chr(ord(head[-1]) + 1) if head else ""


def _revision(change: Commit) -> int:
    return change.revision
