"""Filters of changes: those by others lead to a reconcile, those by our own writes do not.

A filter looks at what differs between two states, not at times: the Go operator compares the times of managedFields,
which have whole seconds, and so misses a change by others in the second of its own write.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import msgspec

from hortus.engine import Change
from hortus.kube.objects import Object, shaped

_IDENTITY = ("manager", "operation", "time", "subresource")


class _Entry(msgspec.Struct, rename={"fields": "fieldsV1"}):
    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: str = ""
    fields: Object = {}


class _Metadata(msgspec.Struct, rename="camel"):
    managed_fields: tuple[_Entry, ...] = ()
    deletion_timestamp: str = ""


class _Written(msgspec.Struct):
    metadata: _Metadata


@cache
def ownership_of(field_manager: str) -> Callable[[Object], Object]:
    """A transform for caches: of managedFields of others it keeps who wrote when, of our own all.

    `hortus.engine.apply` compares with our own; the filter below needs the others'.
    """

    def shrink(obj: Object) -> Object:
        entries = obj["metadata"].get("managedFields")
        if entries:
            obj["metadata"]["managedFields"] = [
                entry
                if entry.get("manager") == field_manager
                else {field: entry[field] for field in _IDENTITY if field in entry}
                for entry in entries
            ]
        return obj

    return shrink


def changed_by_others(field_manager: str) -> Callable[[Change], bool]:
    """The filter of owned objects: deletions, and updates that another manager made. Creations do not pass.

    Equivalent to the event filter of instana/instana-agent-operator (`controllers/event_filter.go`), but for changes
    within the second of our own write, which it lets pass too.
    """

    def passes(change: Change) -> bool:
        if change.new is None:
            return True
        if change.old is None:
            return False
        return _by_others(change.old, change.new, field_manager)

    return passes


def _by_others(old: Object, new: Object, field_manager: str) -> bool:
    before, after = shaped(old, _Written), shaped(new, _Written)
    if before is None or after is None or old.get("status") != new.get("status"):
        return True
    if before.metadata.deletion_timestamp != after.metadata.deletion_timestamp:
        return True
    if _taken_from(before, after, field_manager):
        return True
    # An entry that is gone is one whose fields we took by force.
    return not _others(after, field_manager) <= _others(before, field_manager)


def _taken_from(before: _Written, after: _Written, field_manager: str) -> bool:
    """True when we have no entry any more, or one that lost fields and was not written by us since."""
    was, now = _ours(before, field_manager), _ours(after, field_manager)
    if now is None:
        return True
    return was is not None and was.time == now.time and not _holds(now.fields, was.fields)


def _holds(fields: Object, former: Object) -> bool:
    return all(key in fields and _holds(fields[key], below) for key, below in former.items())


def _ours(written: _Written, field_manager: str) -> _Entry | None:
    return next((entry for entry in written.metadata.managed_fields if _is_ours(entry, field_manager)), None)


def _is_ours(entry: _Entry, field_manager: str) -> bool:
    return (entry.manager, entry.operation, entry.subresource) == (field_manager, "Apply", "")


def _others(written: _Written, field_manager: str) -> set[tuple[str, ...]]:
    return {
        (entry.manager, entry.operation, entry.subresource, entry.time)
        for entry in written.metadata.managed_fields
        if not _is_ours(entry, field_manager)
    }
