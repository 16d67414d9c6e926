"""Server-side apply, and the ownership of fields after every other write.

`update` is for create, update and every patch but apply: it returns managedFields for an object that is decided
already. `apply` also decides the object: it merges a configuration over the live object, removes the fields that its
applier no longer applies, and refuses to change fields of others unless forced. Both are pure; the time is a parameter.
An operation without effect returns the same objects.

Semantics: KEP-555 and k8s.io/apimachinery, package managedfields, 1.32 and later. Entries of other versions of the kind
are read under the assumption that all versions have the same fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.schema.merge.comparison import Comparison, compare, same
from hortus.schema.merge.errors import ApplyConflict, FieldConflict, FieldManager, InvalidConfig, TypeMismatch
from hortus.schema.merge.extraction import UnkeyedItem, fields_of
from hortus.schema.merge.fieldset import (
    FieldSet,
    difference,
    field_set,
    intersection,
    members,
    recursive_difference,
    union,
)
from hortus.schema.merge.lastapplied import allowed_by_last_applied, with_last_applied
from hortus.schema.merge.managers import (
    InvalidManagedFields,
    Managers,
    OwnershipEntry,
    asks_for_reset,
    cap,
    decode,
    encode,
    parse,
    time_text,
)
from hortus.schema.merge.merging import merge
from hortus.schema.merge.pruning import may_prune, prune
from hortus.schema.merge.reconciling import reconcile
from hortus.schema.merge.typecheck import problems_of
from hortus.schema.merge.types import MergeSchema, MergeType

Object = dict[str, Any]

KUBECTL = "kubectl"
"""The only manager whose applies may take over from client-side apply (kubectl apply --server-side)."""
UNKNOWN = "unknown"
BEFORE_FIRST_APPLY = "before-first-apply"

_NEVER_OWNED = field_set(
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
)
_NO_ENTRIES: list[Object] = []


def update(
    old: Object | None,
    new: Object,
    *,
    manager: str,
    api_version: str,
    now: float,
    schema: MergeSchema,
    subresource: str = "",
    reset_fields: FieldSet | None = None,
) -> list[Object]:
    """The managedFields of `new` after `manager` created it (`old` is None) or changed `old` into it.

    `reset_fields` are those that this endpoint ignores (`{"f:status": {}}` where there is a status subresource). Never
    fails: an object that does not have the form of its schema has no owned fields, as in kube-apiserver. The list is
    that of `old` when nothing changed.
    """
    written = managed_fields_of(old)
    try:
        managers = _given(written, new, subresource)
        if not managers and old is not None:
            return _NO_ENTRIES
        who = FieldManager(manager or UNKNOWN, "Update", api_version, subresource)
        before = schema.empty if old is None else old
        managers = _updated(managers, before, new, who, now, schema.root, reset_fields)
    except (UnkeyedItem, RecursionError):
        return _NO_ENTRIES
    return encode(managers, written)


def apply(
    live: Object | None,
    config: Object,
    *,
    manager: str,
    api_version: str,
    now: float,
    schema: MergeSchema,
    force: bool = False,
    subresource: str = "",
    reset_fields: FieldSet | None = None,
) -> Object:
    """Applies `config` as `manager` to `live` (None when there is none yet); returns the object with its managedFields.

    The result is `live` itself when nothing changed; else it shares the unchanged parts with `live`. Raises
    ApplyConflict, and InvalidConfig or TypeMismatch for a configuration that cannot be applied.
    """
    _check_config(config, api_version, schema.root)
    who = FieldManager(manager or UNKNOWN, "Apply", "", subresource)
    try:
        applied = _Apply(live, config, who, api_version, now, schema, reset_fields)
        try:
            result = applied.run(force=force)
        except ApplyConflict as conflict:
            if manager != KUBECTL or not applied.allows(conflict):
                raise
            result = applied.run(force=True)
    except UnkeyedItem as error:
        raise TypeMismatch(f"failed to create typed live object: {error}") from error
    except RecursionError as error:
        raise InvalidConfig("the object is nested too deeply") from error
    return with_last_applied(result, config) if manager == KUBECTL else result


def unchanged(old: Object, new: Object) -> bool:
    """Reports whether `new` equals `old` but for the times in managedFields, so that a write would only raise the
    revision.

    To be called after defaults and hooks, because they may undo the changes of an apply.
    """
    if same(old, new):
        return True
    before, after = managed_fields_of(old), managed_fields_of(new)
    if not before or len(before) != len(after) or not all(map(_same_but_time, before, after)):
        return False
    return same(_with_managed_fields(old, before), _with_managed_fields(new, before))


def _same_but_time(left: Object, right: Object) -> bool:
    return {**left, "time": ""} == {**right, "time": ""}


def managed_fields_of(obj: Object | None) -> list[Object]:
    """metadata.managedFields of `obj`, empty where there is none."""
    if obj is None:
        return _NO_ENTRIES
    return (obj.get("metadata") or {}).get("managedFields") or _NO_ENTRIES


def _given(written: list[Object], new: Object, subresource: str) -> Managers:
    """The table to start from: the client's own where it may send one, else the live object's."""
    metadata = new.get("metadata") or {}
    sent = metadata.get("managedFields")
    if not subresource and sent is not written and sent is not None and sent != written:
        if asks_for_reset(sent):
            return {}
        try:
            managers = parse(sent)
        except InvalidManagedFields:
            managers = {}
        if managers:
            return managers
    try:
        return decode(written)
    except InvalidManagedFields:
        return {}


def _updated(
    managers: Managers,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    who: FieldManager,
    now: float,
    root: MergeType,
    reset_fields: FieldSet | None,
) -> Managers:
    managers = _reconciled(managers, root)
    found = compare(old, new, root)
    changed, removed = found.changed, found.removed
    if reset_fields:
        changed = recursive_difference(changed, reset_fields)
        removed = recursive_difference(removed, reset_fields)
    managers = _without(managers, changed, removed)
    taken = difference(changed, _NEVER_OWNED)
    if taken:
        previous = managers.get(who)
        fields = taken if previous is None else union(taken, previous.fields)
        managers[who] = OwnershipEntry(fields, who.api_version, time_text(now))
    return cap(managers)


def _reconciled(managers: Managers, root: MergeType) -> Managers:
    for manager, entry in managers.items():
        fields = reconcile(entry.fields, root)
        if fields is not entry.fields:
            managers[manager] = OwnershipEntry(fields, entry.api_version, entry.time)
    return managers


def _without(managers: Managers, changed: FieldSet, removed: FieldSet, spared: FieldManager | None = None) -> Managers:
    """The table after all managers but `spared` lost the fields that changed or were removed."""
    result: Managers = {}
    for manager, entry in managers.items():
        fields = entry.fields
        if manager != spared:
            fields = difference(difference(fields, changed), removed)
        if fields is entry.fields:
            result[manager] = entry
        elif fields:
            result[manager] = OwnershipEntry(fields, entry.api_version, entry.time)
    return {manager: entry for manager, entry in result.items() if entry.fields}


class _Apply:
    """One apply, run again with force when all its conflicts are with the applier's own client-side apply."""

    def __init__(
        self,
        live: Object | None,
        config: Object,
        who: FieldManager,
        api_version: str,
        now: float,
        schema: MergeSchema,
        reset_fields: FieldSet | None,
    ) -> None:
        self._existing = live
        self._config = config
        self._who = who
        self._api_version = api_version
        self._now = now
        self._schema = schema
        self._reset = reset_fields
        self._written = managed_fields_of(live)

    def run(self, *, force: bool) -> Object:
        root = self._schema.root
        live = self._existing if self._existing is not None else {}
        managers = _reconciled(self._managers(), root)
        last = managers.get(self._who)
        fields = fields_of(self._config, root)
        if self._reset:
            fields = recursive_difference(fields, self._reset)
        managers[self._who] = OwnershipEntry(fields, self._api_version, "" if last is None else last.time)
        merged = merge(live, self._config, root)
        if last is not None and may_prune(self._config, merged, last=last.fields, fields=fields):
            merged = prune(merged, root, last=last.fields, owned=_everything(managers))
        found = compare(live, merged, root)
        managers = self._settled(managers, found, force=force)
        return self._result(live, merged, managers, last, changed=merged is not live and not same(live, merged))

    def allows(self, conflict: ApplyConflict) -> bool:
        """Reports whether all conflicts are with the last client-side apply; raises those that are not."""
        if self._existing is None:
            return False
        allowed = allowed_by_last_applied(self._existing, self._api_version, self._schema.root)
        if allowed is None:
            return False
        theirs = [one for one in conflict.conflicts if difference(field_set(one.path), allowed)]
        if theirs:
            raise ApplyConflict(theirs)
        return True

    def _managers(self) -> Managers:
        try:
            managers = decode(self._written)
        except InvalidManagedFields as error:
            raise TypeMismatch(f"failed to decode managed fields: {error}") from error
        if managers or self._existing is None:
            return managers
        first = FieldManager(BEFORE_FIRST_APPLY, "Update", self._api_version, self._who.subresource)
        empty = self._schema.empty
        return _updated(managers, empty, self._existing, first, self._now, self._schema.root, self._reset)

    def _settled(self, managers: Managers, found: Comparison, *, force: bool) -> Managers:
        changed, removed = found.changed, found.removed
        if self._reset:
            changed = recursive_difference(changed, self._reset)
            removed = recursive_difference(removed, self._reset)
        if changed and not force:
            conflicts = [
                FieldConflict(manager, path)
                for manager, entry in managers.items()
                if manager != self._who
                for path in members(intersection(entry.fields, changed))
            ]
            if conflicts:
                raise ApplyConflict(conflicts)
        return _without(managers, changed, removed, spared=self._who)

    def _result(
        self, live: Object, merged: Object, managers: Managers, last: OwnershipEntry | None, *, changed: bool
    ) -> Object:
        own = managers.get(self._who)
        if own is not None:
            fields = difference(own.fields, _NEVER_OWNED)
            if not fields:
                del managers[self._who]
            elif not changed and last is not None and fields == last.fields and last.api_version == self._api_version:
                managers[self._who] = last
            else:
                time = time_text(self._now) if changed else own.time
                managers[self._who] = OwnershipEntry(fields, self._api_version, time)
        entries = encode(managers, self._written)
        if not changed and entries is self._written and self._existing is not None:
            return self._existing
        return _with_managed_fields(merged if changed else live or merged, entries)


def _everything(managers: Managers) -> FieldSet:
    result: FieldSet = {}
    for entry in managers.values():
        result = union(result, entry.fields)
    return result


def _with_managed_fields(obj: Object, entries: list[Object]) -> Object:
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**obj, "metadata": metadata}


def _check_config(config: Object, api_version: str, root: MergeType) -> None:
    if config.get("apiVersion") != api_version:
        raise InvalidConfig(f"invalid object type: {_type_of(config)}")
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields"):
        raise InvalidConfig("metadata.managedFields must be nil")
    try:
        problems = problems_of(config, root)
    except RecursionError as error:
        raise InvalidConfig("the configuration is nested too deeply") from error
    if problems:
        raise TypeMismatch(f"failed to create typed patch object ({_named(config)}): {problems}")


def _named(obj: Object) -> str:
    """An object as kube-apiserver names it in such errors: `default/web; apps/v1, Kind=Deployment`."""
    metadata = obj.get("metadata") or {}
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {_type_of(obj)}"


def _type_of(obj: Object) -> str:
    version = str(obj.get("apiVersion") or "")
    return f"{version if '/' in version else '/' + version}, Kind={obj.get('kind') or ''}"
