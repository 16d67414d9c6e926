"""Which part of the old object a part of the new one is compared with (KEP-4008, CRD validation ratcheting).

Fields correlate by name, members of a list by its map keys; members of other lists do not correlate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hortus.schema.nodes import Node

NOTHING: Final = object()
"""There is no old value to compare with."""


def under_key(name: str, old: Any, *, at_root: bool) -> Any:
    if type(old) is not dict or (at_root and name in ("apiVersion", "kind")):
        return NOTHING
    return old.get(name, NOTHING)


def under_index(node: Node, item: Any, old: Any) -> Any:
    """The member of the list `old` that has the map keys of `item`."""
    if node.list_type != "map" or type(old) is not list:
        return NOTHING
    key = map_key(node, item)
    if key is None:
        return NOTHING
    return next((before for before in old if map_key(node, before) == key), NOTHING)


def map_key(node: Node, item: Any) -> tuple[Any, ...] | None:
    """The values of the list's map keys, with the defaults of absent ones."""
    if type(item) is not dict:
        return None
    properties = node.items.properties if node.items is not None else {}
    return tuple(
        item[name] if name in item else (properties[name].default if name in properties else None)
        for name in node.list_map_keys
    )


def same(node: Node, value: Any, old: Any) -> bool:
    """Equality that sees a keyed list as its members in any order and keeps booleans apart from numbers."""
    if type(value) is not type(old):
        return type(value) in (int, float) and type(old) in (int, float) and value == old
    if type(value) is dict:
        return value.keys() == old.keys() and all(
            same(node.properties.get(name) or node.additional or node, item, old[name]) for name, item in value.items()
        )
    if type(value) is list:
        return len(value) == len(old) and _same_members(node, value, old)
    return bool(value == old)


def _same_members(node: Node, value: list[Any], old: list[Any]) -> bool:
    inner = node.items or node
    if node.list_type != "map":
        return all(same(inner, item, before) for item, before in zip(value, old, strict=True))
    for item in value:
        before = under_index(node, item, old)
        if before is NOTHING or not same(inner, item, before):
            return False
    return True
