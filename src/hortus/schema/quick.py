"""A predicate for each node of a schema, true only for values that the full walk would accept.

Nearly all objects that are written are valid, and to find that takes no paths, no texts and no list of problems. So
`Structural.validate` runs the predicates first and walks only values that they do not accept. They cover the types, the
keywords and the uniqueness of sets and maps (`lists`); rare values (null, whole floats, sets of values other than
texts) are left to the walk. Predicates are closures, made at first use and kept by their node, as equal schemas share
nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hortus.schema import checks
from hortus.schema.checks import Check
from hortus.schema.lists import check_lists
from hortus.schema.nodes import SchemaNode
from hortus.schema.problems import FieldError

Predicate = Callable[[Any], bool]


def predicate(node: SchemaNode) -> Predicate:
    """A predicate that is true only for values that are valid at `node`."""
    found: Predicate | None = node.quick
    if found is None:
        found = node.quick = _made(node)
    return found


def _made(node: SchemaNode) -> Predicate:
    if node.has_junctors or not node.accepted:
        return _walk(node)
    if dict in node.accepted:
        return _object(node)
    if list in node.accepted:
        return _list(node)
    by_type = {kind: _scalar(kind, _scalar_checks(node, kind)) for kind in node.accepted}
    if len(by_type) == 1:
        return by_type.popitem()[1]
    return lambda value: (holds := by_type.get(type(value))) is not None and holds(value)


def _walk(node: SchemaNode) -> Predicate:
    """The walk itself, for alternatives and for values of several types."""

    def holds(value: Any) -> bool:
        found: list[FieldError] = []
        node.check(value, "", found)
        if not found:
            check_lists(value, node, "", found)
        return not found

    return holds


def _scalar_checks(node: SchemaNode, kind: type) -> tuple[Check, ...]:
    found: tuple[Check, ...] = ()
    if kind is str:
        found = node.string_checks if node.format is None else (*node.string_checks, node.format)
    elif kind is int:
        found = (_below_two_to_the_63, *node.number_checks)
    elif kind is float:
        found = node.number_checks
    return found if node.enum is None else (*found, node.enum)


def _below_two_to_the_63(value: Any, path: str) -> FieldError | None:
    return None if value <= checks.INT64_MAX else FieldError(path, "", "")


def _scalar(kind: type, demanded: tuple[Check, ...]) -> Predicate:
    if not demanded:
        return lambda value: type(value) is kind
    if len(demanded) == 1:
        (only,) = demanded
        return lambda value: type(value) is kind and only(value, "") is None
    return lambda value: type(value) is kind and all(check(value, "") is None for check in demanded)


def _list(node: SchemaNode) -> Predicate:
    items = None if node.items is None else predicate(node.items)
    demanded = node.array_checks if node.enum is None else (*node.array_checks, node.enum)
    keyed = not node.native and node.list_type in ("set", "map")

    def holds(value: Any) -> bool:
        if type(value) is not list:
            return False
        if items is not None:
            for item in value:
                if not items(item):
                    return False
        for check in demanded:
            if check(value, "") is not None:
                return False
        return not keyed or not value or _differ(value, node)

    return holds


def _differ(value: list[Any], node: SchemaNode) -> bool:
    """True when the members of a set, or the keys of a map, are different texts."""
    try:
        if node.list_type == "set":
            seen = set(value)
            return len(seen) == len(value) and all(type(item) is str for item in value)
        if any(type(item) is not dict for item in value):
            return False
        texts = {tuple(item[key] for key in node.list_map_keys) for item in value}
        return len(texts) == len(value) and all(type(text) is str for row in texts for text in row)
    except (KeyError, TypeError):
        return False


def _object(node: SchemaNode) -> Predicate:
    known = {name: predicate(child) for name, child in node.properties.items()}
    other = None if node.additional is None else predicate(node.additional)
    demanded = node.object_checks if node.enum is None else (*node.object_checks, node.enum)
    required = node.required

    def holds(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for name, item in value.items():
            check = known.get(name, other)
            if check is not None and not check(item):
                return False
        for name in required:
            if value.get(name) is None:
                return False
        return all(demand(value, "") is None for demand in demanded)

    return holds
