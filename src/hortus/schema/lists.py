"""The guarantee of `x-kubernetes-list-type`: members of a set, and keys of a map, occur once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hortus.schema import problems
from hortus.schema.nodes import SchemaNode
from hortus.schema.problems import FieldError


def check_lists(value: Any, node: SchemaNode, path: str, found: list[FieldError]) -> None:
    """Appends a problem for each member that repeats an earlier one; a third copy is not reported."""
    if not node.has_list_rules_below:
        return
    if type(value) is list:
        if node.list_type == "set":
            _repeats(value, path, found, lambda item: item)
        elif node.list_type == "map":
            _check_keyed(value, node.list_map_keys, path, found)
        if node.items is not None:
            for index, item in enumerate(value):
                check_lists(item, node.items, f"{path}[{index}]", found)
    elif type(value) is dict:
        for name, item in value.items():
            child = node.properties.get(name)
            if child is not None:
                check_lists(item, child, f"{path}.{name}" if path else name, found)
            elif node.additional is not None:
                check_lists(item, node.additional, f"{path}[{name}]", found)


def _check_keyed(value: list[Any], keys: Sequence[str], path: str, found: list[FieldError]) -> None:
    for index, item in enumerate(value):
        if item is not None and type(item) is not dict:
            text = "must be an object for an array of list-type map"
            found.append(problems.invalid(f"{path}[{index}]", item, text))
            return
    _repeats(value, path, found, lambda item: {key: item[key] for key in keys if item is not None and key in item})


def _repeats(value: list[Any], path: str, found: list[FieldError], shown: Callable[[Any], Any]) -> None:
    if len(value) < 2:
        return
    places = _second_copies(map(shown, value))
    found.extend(problems.duplicate(f"{path}[{index}]", shown(value[index])) for index in places)


def _second_copies(items: Iterable[Any]) -> list[int]:
    counts: dict[Any, int] = {}
    places: list[int] = []
    for index, item in enumerate(items):
        key = problems.json_text(item) if isinstance(item, (dict, list)) else (type(item), item)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] == 2:
            places.append(index)
    return places
