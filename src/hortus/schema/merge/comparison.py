"""The difference of two versions of one object, as sets of fields.

Equal parts are skipped by Python's own comparison, so the cost is that of the changes; a second, strict comparison
separates `true` from `1`, which are equal in Python. Semantics: structured-merge-diff, typed.Compare (an added or
removed map is itself a member besides its content; list items are matched by key, repeated items as a whole).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import orjson

from hortus.schema.merge.elements import SELF
from hortus.schema.merge.extraction import item_element
from hortus.schema.merge.fieldset import FieldSet, node_union, union
from hortus.schema.merge.types import MergeType

Value = Any
_Node = FieldSet | None


class Comparison(NamedTuple):
    """Fields of the newer object alone, of both with different values, and of the older one alone."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def changed(self) -> FieldSet:
        return union(self.added, self.modified)


class _Difference(NamedTuple):
    """The node of one place in each of the three sets; None where it is in none."""

    added: _Node = None
    modified: _Node = None
    removed: _Node = None


_ABSENT = object()
_NONE = _Difference()
_MODIFIED = _Difference(modified={})


def compare(old: Mapping[str, Value], new: Mapping[str, Value], root: MergeType) -> Comparison:
    """Compare two objects of the type `root`; raises UnkeyedItem when a list item cannot be named."""
    if old is new or root.atomic_map:
        return Comparison({}, {}, {})
    found = _maps(old, new, root)
    return Comparison(found.added or {}, found.modified or {}, found.removed or {})


def same(left: Value, right: Value) -> bool:
    """Reports whether two JSON values are equal; unlike `==` it keeps booleans and numbers apart."""
    if left is right:
        return True
    if left != right:
        return False
    kind = left.__class__
    if kind is str:
        return True
    if kind is dict or kind is list:
        # Equal bytes are the quick proof; it fails for another order of keys, and for 1 next to 1.0.
        text = _bytes(left)
        if text and text == _bytes(right):
            return True
    return _same_kinds(left, right)


def identity(value: Value) -> Hashable:
    """A key for a JSON value: two of them are equal when `same` holds."""
    kind = value.__class__
    if kind is dict:
        return frozenset((key, identity(item)) for key, item in value.items())
    if kind is list:
        return tuple(map(identity, value))
    return (bool, value) if kind is bool else value


def _bytes(value: Value) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        return b""


def _same_kinds(left: Value, right: Value) -> bool:
    if left is right:
        return True
    kind = left.__class__
    if kind is dict:
        return all(_same_kinds(value, right[key]) for key, value in left.items())
    if kind is list:
        return all(map(_same_kinds, left, right))
    return (kind is bool) is (right.__class__ is bool)


def _maps(old: Mapping[str, Value], new: Mapping[str, Value], kind: MergeType) -> _Difference:
    added: FieldSet = {}
    modified: FieldSet = {}
    removed: FieldSet = {}
    declared, element = kind.fields, kind.element
    for key, right in new.items():
        left = old.get(key, _ABSENT)
        if left is right:
            continue
        field = (declared[key] if declared is not None else None) or element
        if left is _ABSENT:
            added["f:" + key] = whole(right, field)
        elif not same(left, right):
            found = _both(left, right, field)
            if found.added is not None:
                added["f:" + key] = found.added
            if found.modified is not None:
                modified["f:" + key] = found.modified
            if found.removed is not None:
                removed["f:" + key] = found.removed
    for key, left in old.items():
        if key not in new:
            removed["f:" + key] = whole(left, (declared[key] if declared is not None else None) or element)
    return _Difference(added or None, modified or None, removed or None)


def whole(value: Value, kind: MergeType | None) -> FieldSet:
    """The node of a value that is on one side only: itself and all its content."""
    if not value or kind is None:
        return {}
    if value.__class__ is dict:
        if kind.atomic_map or not kind.is_map:
            return {}
        declared, element = kind.fields, kind.element
        node: FieldSet = {SELF: {}}
        for key, item in value.items():
            if item.__class__ is dict or item.__class__ is list:
                node["f:" + key] = whole(item, (declared[key] if declared is not None else None) or element)
            else:
                node["f:" + key] = {}
        return node
    if value.__class__ is not list or kind.list_type == "atomic":
        return {}
    return {SELF: {}, **_items(value, kind)}


def _items(values: list[Value], kind: MergeType) -> FieldSet:
    node: FieldSet = {}
    repeated = set()
    for item in values:
        element = item_element(item, kind)
        if element in node:
            repeated.add(element)
        node[element] = whole(item, kind.items)
    for element in repeated:
        node[element] = {}
    return node


def _form(value: Value, kind: MergeType) -> str:
    """The form, out of those that `kind` allows, in which `value` is read; empty when it fits none, as null does."""
    if value.__class__ is dict:
        return "map" if kind.is_map else ""
    if value.__class__ is list:
        return "list" if kind.is_list else ""
    return "scalar" if value is not None and kind.scalar else ""


def _preferred(kind: MergeType) -> str:
    return "map" if kind.is_map else "scalar" if kind.scalar else "list"


def _both(left: Value, right: Value, kind: MergeType | None) -> _Difference:
    if kind is None:
        return _MODIFIED
    forms = {_form(left, kind) or _preferred(kind), _form(right, kind) or _preferred(kind)}
    if len(forms) == 1:
        return _in_form(left, right, kind, forms.pop())
    first, second = (_in_form(left, right, kind, form) for form in forms)
    return _Difference(*(_joined(ours, theirs) for ours, theirs in zip(first, second, strict=True)))


def _joined(ours: _Node, theirs: _Node) -> _Node:
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    return node_union(ours, theirs)


def _in_form(left: Value, right: Value, kind: MergeType, form: str) -> _Difference:
    if form == "map":
        old = left if left.__class__ is dict else {}
        new = right if right.__class__ is dict else {}
        return _MODIFIED if kind.atomic_map or not (old or new) else _maps(old, new, kind)
    if form == "list" and kind.list_type != "atomic":
        before = left if left.__class__ is list else []
        after = right if right.__class__ is list else []
        return _lists(before, after, kind) if before or after else _MODIFIED
    return _MODIFIED


def _indexed(values: list[Value], kind: MergeType) -> dict[str, list[Value]]:
    found: dict[str, list[Value]] = {}
    for item in values:
        found.setdefault(item_element(item, kind), []).append(item)
    return found


def _lists(old: list[Value], new: list[Value], kind: MergeType) -> _Difference:
    added: FieldSet = {}
    modified: FieldSet = {}
    removed: FieldSet = {}
    before, after = _indexed(old, kind), _indexed(new, kind)
    for element in before | after:
        found = _item(before.get(element, []), after.get(element, []), kind.items)
        if found.added is not None:
            added[element] = found.added
        if found.modified is not None:
            modified[element] = found.modified
        if found.removed is not None:
            removed[element] = found.removed
    return _Difference(added or None, modified or None, removed or None)


def _item(before: list[Value], after: list[Value], kind: MergeType) -> _Difference:
    """One key of a list. A repeated key represents all its items together and is owned as a whole."""
    if len(before) > 1 and len(after) > 1:
        return _NONE if same(before, after) else _MODIFIED
    if len(before) > 1:
        return _Difference(added=whole(after[0], kind) if after else None, removed={})
    if len(after) > 1:
        return _Difference(added={}, removed=whole(before[0], kind) if before else None)
    if not after:
        return _Difference(removed=whole(before[0], kind))
    if not before:
        return _Difference(added=whole(after[0], kind))
    return _NONE if same(before[0], after[0]) else _both(before[0], after[0], kind)
