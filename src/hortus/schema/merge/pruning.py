"""Removes the fields that an applier applied last time and no longer does, unless another manager owns them.

Semantics: structured-merge-diff, merge.Updater.prune and typed.RemoveItems. The removal works on sets that also contain
declared fields ("named"), which are otherwise not members; a list or map that loses its last part becomes null where it
cannot be removed itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.schema.merge.elements import SELF
from hortus.schema.merge.extraction import UnkeyedItem, fields_of, item_element
from hortus.schema.merge.fieldset import FieldSet, difference, intersection, is_member, union
from hortus.schema.merge.types import MergeType

Value = Any


def may_prune(config: Mapping[str, Value], merged: Mapping[str, Value], *, last: FieldSet, fields: FieldSet) -> bool:
    """Reports whether a removal is possible: a field of `last` is not in `fields`, the fields of `config`.

    There is one more case: where the configuration has null or {} over a part with content, that part is removed if its
    content has no owner and no members in a set of fields, for example an empty list.
    """
    return bool(difference(last, fields)) or _covers(config, merged)


def _covers(config: Mapping[str, Value], merged: Mapping[str, Value]) -> bool:
    for key, item in config.items():
        if item.__class__ is str:
            continue
        current = merged.get(key)
        if not item and (item is None or item.__class__ is dict):
            if current:
                return True
        elif item.__class__ is dict:
            if current.__class__ is dict and _covers(item, current):
                return True
        elif item.__class__ is list and item != current and any(map(_hollow, item)):
            return True
    return False


def _hollow(value: Value) -> bool:
    """Reports whether a list item has null or {} anywhere."""
    if value.__class__ is dict:
        return not value or any(map(_hollow, value.values()))
    return value is None or (value.__class__ is list and any(map(_hollow, value)))


def prune(merged: dict[str, Value], root: MergeType, *, last: FieldSet, owned: FieldSet) -> dict[str, Value]:
    """`merged` without the fields of `last` that are not in `owned`, the fields of all managers."""
    claimed = named(owned, root)
    before = named(fields_of(merged, root), root)
    without_last = named(_fields(remove(merged, named(last, root), root), root), root)
    kept = remove(merged, difference(before, union(without_last, claimed)), root)
    gone = difference(before, named(_fields(kept, root), root))
    pruned = remove(merged, intersection(gone, named(last, root)), root)
    return pruned if isinstance(pruned, dict) else {}


def _fields(value: Value, root: MergeType) -> FieldSet:
    return fields_of(value, root) if isinstance(value, dict) else {}


def named(fields: FieldSet, kind: MergeType | None) -> FieldSet:
    """The set in which each declared field that holds a member is a member too."""
    return {key: _named(key, below, kind) if below else below for key, below in fields.items()}


def _named(element: str, below: FieldSet, kind: MergeType | None) -> FieldSet:
    inner, declared = None, False
    if kind is not None and element.startswith("f:") and kind.is_map:
        inner, declared = kind.field(element[2:]), kind.declares(element[2:])
    elif kind is not None and element.startswith("k:") and kind.is_list:
        inner = kind.items
    result = named(below, inner)
    return {SELF: {}, **result} if declared and SELF not in result else result


def remove(value: Value, fields: FieldSet, kind: MergeType | None) -> Value:
    """`value` without the members of `fields`; null when a container has nothing left or can only be removed as a
    whole."""
    if not fields or kind is None:
        return value
    if value.__class__ is dict and kind.is_map:
        return None if kind.atomic_map else _remove_from_map(value, fields, kind)
    if value.__class__ is list and kind.is_list:
        return None if kind.list_type == "atomic" else _remove_from_list(value, fields, kind)
    if value is not None and kind.scalar and not isinstance(value, dict | list):
        return value
    return None


def _remove_from_map(value: Mapping[str, Value], fields: FieldSet, kind: MergeType) -> dict[str, Value] | None:
    result = {}
    for key, item in value.items():
        node = fields.get("f:" + key)
        if node is None:
            result[key] = item
        elif not is_member(node):
            result[key] = remove(item, node, kind.field(key))
    return result or None


def _remove_from_list(value: list[Value], fields: FieldSet, kind: MergeType) -> list[Value] | None:
    result = []
    for item in value:
        node = _node_of(item, fields, kind)
        if node is None:
            result.append(item)
        elif not is_member(node):
            result.append(remove(item, node, kind.items))
    return result or None


def _node_of(item: Value, fields: FieldSet, kind: MergeType) -> FieldSet | None:
    try:
        node: FieldSet | None = fields.get(item_element(item, kind))
    except UnkeyedItem:
        return None
    return node
