"""Defaulting, nested defaults included, and the removal of nulls before it (docs "Custom Resources", Defaulting).

A null in a field that is not nullable counts as absent: it takes the default, or is dropped where there is none.
"""

from __future__ import annotations

from typing import Any

from hortus.schema.nodes import SchemaNode


def default(obj: dict[str, Any], node: SchemaNode) -> None:
    """Apply defaults in place. Fields that carry a default may be replaced, everything else stays the same object."""
    if node.has_nulls_to_prune:
        drop_nulls(obj, node)
    fill(obj, node)


def drop_nulls(value: Any, node: SchemaNode) -> None:
    """Drop nulls of object fields that are neither nullable nor defaulted."""
    if type(value) is dict:
        dropped: list[str] = []
        for name, item in value.items():
            child = node.properties.get(name, node.additional)
            if child is None:
                continue
            if item is None:
                if child.prunes_null and not child.has_default:
                    dropped.append(name)
            elif child.has_nulls_to_prune:
                drop_nulls(item, child)
        for name in dropped:
            del value[name]
    elif type(value) is list and node.items is not None and node.items.has_nulls_to_prune:
        for item in value:
            drop_nulls(item, node.items)


def fill(value: Any, node: SchemaNode) -> None:
    """Defaults below `value`; an absent parent without a default of its own stays absent."""
    if not node.has_defaults_below:
        return
    if type(value) is dict:
        _fill_object(value, node)
    elif type(value) is list and node.items is not None:
        for index, item in enumerate(value):
            if item is None and node.items.has_default and node.items.prunes_null:
                value[index] = item = fresh(node.items.default)
            fill(item, node.items)


def _fill_object(value: dict[str, Any], node: SchemaNode) -> None:
    for name, child in node.properties.items():
        item = value.get(name)
        if item is None and child.has_default and (name not in value or child.prunes_null):
            value[name] = item = fresh(child.default)
        if child.has_defaults_below and item is not None:
            fill(item, child)
    other = node.additional
    if other is not None:
        for name, item in value.items():
            if name not in node.properties:
                if item is None and other.has_default and other.prunes_null:
                    value[name] = item = fresh(other.default)
                fill(item, other)


def fresh(value: Any) -> Any:
    """A copy of a JSON value."""
    if type(value) is dict:
        return {name: fresh(item) for name, item in value.items()}
    if type(value) is list:
        return [fresh(item) for item in value]
    return value
