"""Correlation of the parts of a new object with those of the old one (KEP-4008, CRD validation ratcheting).

Fields correlate by name, members of a list by its map keys; members of other lists do not correlate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hortus.schema.nodes import SchemaNode

NOTHING: Final = object()
"""There is no old value to compare with."""


def under_key(name: str, old: Any, *, at_root: bool) -> Any:
    if type(old) is not dict or (at_root and name in ("apiVersion", "kind")):
        return NOTHING
    return old.get(name, NOTHING)


def under_index(node: SchemaNode, item: Any, old: Any) -> Any:
    """The member of the list `old` that has the map keys of `item`."""
    if node.list_type != "map" or type(old) is not list:
        return NOTHING
    key = map_key(node, item)
    if key is None:
        return NOTHING
    return next((before for before in old if map_key(node, before) == key), NOTHING)


def map_key(node: SchemaNode, item: Any) -> tuple[Any, ...] | None:
    """The values of the list's map keys, or None when one is missing or no scalar."""
    if type(item) is not dict:
        return None
    found = tuple(item.get(name) for name in node.list_map_keys)
    return None if any(value is None or isinstance(value, (dict, list)) for value in found) else found


def same(node: SchemaNode, value: Any, old: Any) -> bool:
    """Reports whether a value is unchanged; the members of a keyed list may be in any order.

    Fields that the schema does not name count as changed, as there is nothing to compare them by.
    """
    if type(value) is not type(old):
        return False
    if type(value) is dict:
        return value.keys() == old.keys() and all(_same_field(node, name, item, old) for name, item in value.items())
    if type(value) is list:
        return len(value) == len(old) and _same_members(node, value, old)
    return bool(value == old)


def _same_field(node: SchemaNode, name: str, item: Any, old: dict[str, Any]) -> bool:
    child = node.properties.get(name, node.additional)
    return child is not None and same(child, item, old[name])


def _same_members(node: SchemaNode, value: list[Any], old: list[Any]) -> bool:
    if node.list_type != "map" or node.items is None:
        return identical(value, old)
    for item in value:
        before = under_index(node, item, old)
        if before is NOTHING or not same(node.items, item, before):
            return False
    return True


def identical(value: Any, old: Any) -> bool:
    """Reports whether two JSON values are equal; keeps booleans, whole numbers and floats apart."""
    if type(value) is not type(old):
        return False
    if type(value) is dict:
        return value.keys() == old.keys() and all(identical(item, old[name]) for name, item in value.items())
    if type(value) is list:
        return len(value) == len(old) and all(map(identical, value, old))
    return bool(value == old)
