"""The set of fields that an object mentions, which are the fields that its applier owns.

A declared field that only holds others is not a member, a map entry is; so `f:metadata` and `f:labels` are not owned
while each label is. Values in a form that the type does not allow count as leaves; `typecheck` refuses them. Semantics:
structured-merge-diff, typed.ToFieldSet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.schema.merge.elements import SELF, key_element, keys_element, set_element
from hortus.schema.merge.fieldset import FieldSet
from hortus.schema.merge.types import MergeType, key_default

Value = Any


NAMELESS = "?"
"""Represents all items of a list that have no path element, such as null in a keyed list."""


class UnkeyedItem(ValueError):
    """An item of an associative list that has no key of its own."""


def fields_of(value: Mapping[str, Value], root: MergeType) -> FieldSet:
    """The set of the fields in `value`; list items that have no path element are one member, `NAMELESS`."""
    return {} if root.atomic_map else _map_fields(value, root)


def _map_fields(value: Mapping[str, Value], kind: MergeType) -> FieldSet:
    result: FieldSet = {}
    declared, element = kind.fields, kind.element
    for key, item in value.items():
        field = declared[key] if declared is not None else None
        if item.__class__ is dict and item:
            below = _below_map(item, field or element)
        elif item.__class__ is list:
            below = _below_list(item, field or element)
        else:
            result["f:" + key] = {}
            continue
        if below is None:
            result["f:" + key] = {}
        elif field is None:
            result["f:" + key] = {SELF: {}, **below} if below else {}
        elif below:
            result["f:" + key] = below
    return result


def _below_map(value: Mapping[str, Value], kind: MergeType | None) -> FieldSet | None:
    """The fields below a map, or None where it is owned as a whole."""
    if kind is None or kind.atomic_map or not kind.is_map:
        return None
    return _map_fields(value, kind)


def _below_list(value: list[Value], kind: MergeType | None) -> FieldSet | None:
    """The items of a list, or None where it is owned as a whole."""
    if kind is None or kind.list_type == "atomic":
        return None
    result: FieldSet = {}
    repeated = set()
    for item in value:
        try:
            element = item_element(item, kind)
        except UnkeyedItem:
            element = NAMELESS
        if element in result:
            repeated.add(element)
        result[element] = item_fields(item, kind.items)
    for element in repeated:
        result[element] = {}
    return result


def item_fields(item: Value, kind: MergeType) -> FieldSet:
    """The node of a list item, which is always a member itself."""
    if item.__class__ is not dict or not item:
        return {}
    below = _below_map(item, kind)
    return {SELF: {}, **below} if below else {}


def item_element(item: Value, kind: MergeType) -> str:
    """The path element of one item of the list type `kind`; raises UnkeyedItem for one that has none."""
    if kind.list_type == "set":
        return _set_item(item)
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise UnkeyedItem(f"associative list with keys may not have {what}")
    keys = kind.keys
    if len(keys) == 1:
        value = item.get(keys[0])
        if value.__class__ is str:
            return key_element(keys[0], value)
    found = [(name, item[name]) for name in keys if name in item]
    if len(found) < len(keys):
        found += _defaults(item, kind)
    if keys and not found:
        quoted = " ".join(f'"{key}"' for key in keys)
        raise UnkeyedItem(
            f"associative list with keys has an element that omits all key fields [{quoted}] "
            "(and doesn't have default values for any key fields)"
        )
    return keys_element(found)


def _defaults(item: Mapping[str, Value], kind: MergeType) -> list[tuple[str, Value]]:
    defaults = ((name, key_default(kind.items, name)) for name in kind.keys if name not in item)
    return [(name, value) for name, value in defaults if value is not None]


def _set_item(item: Value) -> str:
    if isinstance(item, dict):
        raise UnkeyedItem("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise UnkeyedItem("not supported: associative list with lists as elements")
    if item is None:
        raise UnkeyedItem("associative list without keys has an element that's an explicit null")
    return set_element(item)
