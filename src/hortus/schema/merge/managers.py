"""metadata.managedFields decoded to a table of owners and their fields, and encoded again.

Entries keep their form; an unchanged one is written back as the same dict, so that an operation without effect leaves
the object unchanged. Sources: KEP-555; k8s.io/apimachinery, package managedfields.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from hortus.schema.merge.errors import FieldManager
from hortus.schema.merge.fieldset import FieldSet, arranged, parse_fields, union

Object = dict[str, Any]

MAX_UPDATE_MANAGERS = 10
"""Entries of updates above this number are folded, oldest first, into one of `ancient-changes`."""
ANCIENT = "ancient-changes"


class OwnershipEntry(NamedTuple):
    """The fields that one manager owns, their version, and the time of the last change (RFC 3339, empty when
    unknown)."""

    fields: FieldSet
    api_version: str
    time: str
    written: Object | None = None
    """The entry as the object holds it, when it is unchanged."""


Managers = dict[FieldManager, OwnershipEntry]


class InvalidManagedFields(ValueError):
    """A managedFields that a client must not send."""


def decode(entries: object) -> Managers:
    """The table of managedFields that this server wrote."""
    found: Managers = {}
    if not entries:
        return found
    if not isinstance(entries, list):
        raise InvalidManagedFields("managedFields must be a list")
    for index, entry in enumerate(entries):
        manager = _manager(entry, index)
        fields = entry.get("fieldsV1")
        found[manager] = OwnershipEntry(
            {} if fields is None else fields, entry["apiVersion"], entry.get("time") or "", entry
        )
    return found


def parse(entries: object) -> Managers:
    """The table of managedFields from outside, checked and brought into canonical spelling.

    Raises InvalidManagedFields with kube-apiserver's text.
    """
    found = decode(entries)
    for manager, entry in found.items():
        try:
            fields = parse_fields(entry.fields)
        except ValueError as error:
            raise InvalidManagedFields(f"error decoding set: {error}") from error
        found[manager] = OwnershipEntry(fields, entry.api_version, _canonical_time(entry.time))
    return found


def validate_managed_fields(entries: object) -> str:
    """The problem of managedFields that a client sent or an admission webhook left; empty when there is none."""
    try:
        parse(entries)
    except InvalidManagedFields as error:
        return str(error)
    return ""


def _manager(entry: object, index: int) -> FieldManager:
    if not isinstance(entry, dict):
        raise InvalidManagedFields(f"managed fields entry {index} must be an object")
    operation = entry.get("operation")
    if operation not in ("Apply", "Update"):
        raise InvalidManagedFields("operation must be `Apply` or `Update`")
    api_version = entry.get("apiVersion")
    if not api_version or not isinstance(api_version, str):
        raise InvalidManagedFields("apiVersion must not be empty")
    kind = entry.get("fieldsType")
    if not kind:
        raise InvalidManagedFields(f"missing fieldsType in managed fields entry {index}")
    if kind != "FieldsV1":
        raise InvalidManagedFields(f'invalid fieldsType "{kind}" in managed fields entry {index}')
    name, subresource = entry.get("manager") or "", entry.get("subresource") or ""
    if not isinstance(name, str) or not isinstance(subresource, str):
        raise InvalidManagedFields(f"manager and subresource of managed fields entry {index} must be strings")
    return FieldManager(name, operation, api_version if operation == "Update" else "", subresource)


def asks_for_reset(entries: object) -> bool:
    """Reports whether a client asks to reset ownership: it sent `[]` or `[{}]`, and not nothing at all."""
    return isinstance(entries, list) and (not entries or entries == [{}])


def encode(managers: Managers, written: Sequence[Object] = ()) -> list[Object]:
    """The table as managedFields, in kube-apiserver's order; `written` itself where it is unchanged."""
    if len(managers) == len(written):
        kept = [entry.written for entry in managers.values()]
        if all(map(_is, kept, written)):
            return written if isinstance(written, list) else list(written)
    ordered = sorted(managers.items(), key=_order)
    entries = [_written(manager, entry) for manager, entry in ordered]
    if len(entries) == len(written) and all(map(_is, entries, written)):
        return written if isinstance(written, list) else list(written)
    return entries


def _is(left: object, right: object) -> bool:
    return left is right


def _order(item: tuple[FieldManager, OwnershipEntry]) -> tuple[str, float, str, str, str]:
    manager, entry = item
    return manager.operation, _seconds(entry.time), manager.name, entry.api_version, manager.subresource


def _written(manager: FieldManager, entry: OwnershipEntry) -> Object:
    if entry.written is not None:
        return entry.written
    result: Object = {}
    if manager.name:
        result["manager"] = manager.name
    result["operation"] = manager.operation
    result["apiVersion"] = entry.api_version
    if entry.time:
        result["time"] = entry.time
    result["fieldsType"] = "FieldsV1"
    result["fieldsV1"] = _arranged(entry.fields)
    if manager.subresource:
        result["subresource"] = manager.subresource
    return result


_MEMO, _MEMO_BYTES = 1024, 4096


def _arranged(fields: FieldSet) -> FieldSet:
    """`arranged`, cached for small sets: objects of one controller have the same fields, in one order."""
    text = orjson.dumps(fields)
    found = _memo.get(text)
    if found is None:
        found = arranged(fields)
        if len(text) <= _MEMO_BYTES:
            if len(_memo) >= _MEMO:
                _memo.clear()
            _memo[text] = found
    return found


_memo: dict[bytes, FieldSet] = {}


def cap(managers: Managers) -> Managers:
    """At most MAX_UPDATE_MANAGERS entries of updates: the oldest ones of a version become one `ancient-changes`."""
    updaters = [manager for manager in managers if manager.operation == "Update"]
    excess = len(updaters) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return managers
    updaters.sort(key=lambda manager: (_seconds(managers[manager].time), manager.sort_key()))
    oldest: dict[str, FieldManager] = {}
    for manager in updaters:
        if excess <= 0:
            break
        version = managers[manager].api_version
        if version in oldest:
            oldest[version] = _folded(managers, oldest[version], manager)
            excess -= 1
        else:
            oldest[version] = manager
    return managers


def _folded(managers: Managers, older: FieldManager, newer: FieldManager) -> FieldManager:
    """Folds two entries of a version into its bucket, with the newer time; returns the bucket's key."""
    version, time = managers[newer].api_version, managers[newer].time
    bucket = FieldManager(ANCIENT, "Update", version, "")
    parts = [managers.pop(key).fields for key in (older, newer) if key in managers]
    if bucket in managers:
        parts.append(managers.pop(bucket).fields)
    managers[bucket] = OwnershipEntry(functools.reduce(union, parts), version, time)
    return bucket


@functools.lru_cache(maxsize=1024)
def _seconds(time: str) -> float:
    return 0.0 if not time else datetime.fromisoformat(time).timestamp() // 1


def _canonical_time(time: object) -> str:
    if not time:
        return ""
    try:
        return time_text(_seconds(str(time)))
    except ValueError as error:
        raise InvalidManagedFields(f"time {time!r} of a managed fields entry is not an RFC 3339 time") from error


@functools.lru_cache(maxsize=64)
def _second_text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def time_text(seconds: float) -> str:
    """metav1.Time of seconds since the epoch: RFC 3339, UTC, whole seconds."""
    return _second_text(int(seconds))
