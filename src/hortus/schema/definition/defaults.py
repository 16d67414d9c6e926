"""Defaults of a schema must be values that the schema itself accepts, and must have no unknown fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hortus.schema import pruning
from hortus.schema.correlation import NOTHING
from hortus.schema.defaulting import fresh
from hortus.schema.embedded import check_embedded
from hortus.schema.nodes import SchemaNode
from hortus.schema.problems import NO_PATH, FieldError, invalid
from hortus.schema.rules import check_rules


def check_defaults(node: SchemaNode, path: str) -> Iterator[FieldError]:
    """Problems of every default below `node`, whose schema stands at `path`."""
    if node.has_default:
        yield from _check(node, f"{path}.default")
    if not node.has_defaults_below:
        return
    if node.items is not None:
        yield from check_defaults(node.items, f"{path}.items")
    for name, child in node.properties.items():
        yield from check_defaults(child, f"{path}.properties[{name}]")


def _check(node: SchemaNode, path: str) -> Iterator[FieldError]:
    value: Any = node.default
    pruned = fresh(value)
    if pruning.prune_value(pruned, node):
        yield invalid(path, value, "must not have unknown fields")
    found: list[FieldError] = []
    check_embedded(value, node, path, found)
    if not found:
        found = [_placed(problem, path) for problem in _problems(node, value)]
    if not found:
        check_rules(value, node, found, value, path=path)
    if not found:
        check_rules(value, node, found, NOTHING, path=path)
    yield from found


def _problems(node: SchemaNode, value: Any) -> list[FieldError]:
    found: list[FieldError] = []
    node.check(value, "", found)
    return found


def _placed(problem: FieldError, path: str) -> FieldError:
    """The problem at its place in the definition; its message still describes the value alone."""
    below = "" if problem.path in ("", NO_PATH) else f".{problem.path}"
    return problem._replace(path=f"{path}{below}")
