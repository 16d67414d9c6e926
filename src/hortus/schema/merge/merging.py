"""Merges an applied configuration over the live object.

Nothing is removed here (`pruning` does that), and nothing unchanged is copied: an unchanged part is the live object's
own, and so is the whole result when the configuration changes nothing. Semantics: structured-merge-diff, typed.Merge;
items keep the live order unless the configuration orders them differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.schema.merge.comparison import same
from hortus.schema.merge.extraction import item_element
from hortus.schema.merge.types import MergeType

Value = Any


def merge(live: dict[str, Value], config: Mapping[str, Value], root: MergeType) -> dict[str, Value]:
    """`live` with `config` merged over it; raises UnkeyedItem when a list item has no path element."""
    if root.atomic_map:
        return live if same(live, config) else dict(config)
    return _maps(live, config, root)


def _maps(live: dict[str, Value], config: Mapping[str, Value], kind: MergeType) -> dict[str, Value]:
    result = None
    declared, element = kind.fields, kind.element
    for key, wanted in config.items():
        if key in live:
            current = live[key]
            if current is wanted:
                continue
            field = (declared[key] if declared is not None else None) or element
            merged = _both(current, wanted, field)
            if merged is current:
                continue
        else:
            merged = wanted
        if result is None:
            result = dict(live)
        result[key] = merged
    return live if result is None else result


def _both(live: Value, config: Value, kind: MergeType | None) -> Value:
    if config.__class__ is dict:
        if kind is not None and kind.is_map and not kind.atomic_map and live and live.__class__ is dict:
            return _maps(live, config, kind)
    elif config.__class__ is list:
        if kind is not None and kind.list_type != "atomic" and live and live.__class__ is list:
            return _lists(live, config, kind)
    elif config is None and kind is not None and _outlives_null(live, kind):
        return live
    return live if same(live, config) else config


def _outlives_null(live: Value, kind: MergeType) -> bool:
    """Reports whether a null in the configuration leaves `live` unchanged, because it holds parts that others may
    own."""
    if live.__class__ is dict:
        return bool(live) and kind.is_map and not kind.atomic_map
    return bool(live) and live.__class__ is list and kind.list_type != "atomic" and not kind.is_map and not kind.scalar


def _lists(live: list[Value], config: list[Value], kind: MergeType) -> list[Value]:
    current = [item_element(item, kind) for item in live]
    wanted = {item_element(item, kind): item for item in config}
    by_element: dict[str, Value] = {}
    for element, item in zip(current, live, strict=True):
        # Repeated live items are dropped: the configuration's item replaces all of them.
        by_element[element] = None if element in by_element else item
    merged = {
        element: _both(by_element[element], item, kind.items) if element in by_element else item
        for element, item in wanted.items()
    }
    result = _in_order(current, live, list(wanted), merged)
    unchanged = len(result) == len(live) and all(map(_is, result, live))
    return live if unchanged else result


def _is(left: Value, right: Value) -> bool:
    return left is right


def _in_order(current: list[str], live: list[Value], wanted: list[str], merged: Mapping[str, Value]) -> list[Value]:
    """Interleaves shared items, in the configuration's order, with each live-only item at its old place among them."""
    result: list[Value] = []
    done: set[str] = set()
    present = set(current)
    shared = iter([element for element in wanted if element in present])
    upcoming = next(shared, None)
    left = right = 0
    while left < len(current) or right < len(wanted):
        if left < len(current):
            element = current[left]
            if element not in merged:
                result.append(live[left])
                left += 1
                continue
            meets = right < len(wanted) and element == wanted[right]
            if right < len(wanted) and not meets and upcoming is not None and element != upcoming:
                left += 1
                continue
            if meets or element in done:
                left += 1
        if right < len(wanted):
            element = wanted[right]
            result.append(merged[element])
            done.add(element)
            right += 1
            if element == upcoming:
                upcoming = next(shared, None)
    return result
