"""The `fieldPath` of a rule: fields in dots or in quoted brackets, checked against the schema.

`.spec.test` and `.spec['a.b']` name declared fields or keys of maps; list indexes are not allowed.
"""

from __future__ import annotations

import re

from hortus.schema.nodes import SchemaNode

_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:\\.|[^'\\])*)'\]")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def normalized(path: str, node: SchemaNode) -> str | None:
    """The path as errors show it, such as `spec.test` or `labels[a.b]`; None when the schema has no such field."""
    found = walk(path, node)
    return found[0] if found is not None else None


def walk(path: str, node: SchemaNode) -> tuple[str, SchemaNode] | None:
    """The shown path and the node it leads to, or None."""
    shown = ""
    pos = 0
    while pos < len(path):
        step = _STEP.match(path, pos)
        if step is None:
            return None
        name = step.group(1) if step.group(1) is not None else _ESCAPE.sub(_unescaped, step.group(2))
        if node.properties:
            child = node.properties.get(name)
            shown = f"{shown}.{name}" if shown else name
        else:
            child = node.additional
            shown = f"{shown}[{name}]"
        if child is None:
            return None
        node, pos = child, step.end()
    return (shown, node) if path else None


def _unescaped(found: re.Match[str]) -> str:
    return _ESCAPES.get(found.group(1), found.group())
