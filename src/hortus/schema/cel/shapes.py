"""Schemas as expressions see them: the fields, their types and the sizes of values.

A shape stands for a node as rules see it: objects have only their declared properties, a resource root also has its
type and its name, and fields without a type cannot be named. Sizes bound the work of a rule before it runs; where a
schema has no limit, the size of a request is the limit.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from hortus.schema.cel.escaping import escaped
from hortus.schema.nodes import SchemaNode, compile_node

MAX_REQUEST = 3 * 1024 * 1024
"""Bytes of the largest request; kube-apiserver assumes the same when it bounds sizes."""

_SCALARS = {"string": "string", "integer": "int", "number": "double", "boolean": "bool"}
_MINIMA = {"string": 2, "integer": 1, "number": 1, "boolean": 4}
"""Bytes of the smallest JSON text of a type."""
_TEMPORAL = {"date-time": 21, "date": 12, "duration": 3}
_LONGEST = {"date-time": 32, "date": 12, "duration": 32}


class CelShape:
    """One node of a schema as expressions see it."""

    def __init__(self, node: SchemaNode, *, root: bool = False) -> None:
        self.node = node
        self._root = root or node.embedded

    @cached_property
    def word(self) -> str:
        """The type word: string, int, double, bool, list, map, object, any, or hidden when it cannot be named."""
        names = self.node.names
        if len(names) != 1:
            return "any" if names else "hidden"
        if names[0] == "array":
            return "list" if self.items is not None else "hidden"
        if names[0] == "object":
            return self._object_word()
        return _SCALARS[names[0]]

    def _object_word(self) -> str:
        if self.node.additional is not None:
            return "map" if self.values is not None else "hidden"
        return "object" if self.fields or not self.node.preserve else "hidden"

    @cached_property
    def fields(self) -> dict[str, CelShape]:
        """Declared fields by their identifiers."""
        found = {}
        for name, child in self.node.properties.items():
            identifier = escaped(name)
            shape = CelShape(child)
            if identifier is not None and shape.word != "hidden":
                found[identifier] = shape
        return found | (_META if self._root else {})

    @cached_property
    def items(self) -> CelShape | None:
        return _visible(self.node.items)

    @cached_property
    def values(self) -> CelShape | None:
        return _visible(self.node.additional)

    @cached_property
    def temporal(self) -> str:
        """`date-time`, `date`, `duration` or `byte` when expressions see such a value instead of the text."""
        name: str = self.node.schema.get("format") or ""
        return name if self.word == "string" and name in (*_TEMPORAL, "byte") else ""

    @cached_property
    def least_bytes(self) -> int:
        """The smallest JSON text that can hold such a value."""
        if self.word in ("object", "map"):
            named = self.fields
            total = 2
            for name in self.node.required:
                shape = named.get(escaped(name) or "")
                if shape is not None and not shape.node.has_default:
                    total += len(name) + 4 + shape.least_bytes
            return total
        if self.temporal in _TEMPORAL:
            return _TEMPORAL[self.temporal]
        return 2 if self.word == "list" else _MINIMA.get((self.node.names or ("integer",))[0], 1)

    @cached_property
    def size(self) -> int:
        """The most characters of a text, members of a list, or fields of a map."""
        schema = self.node.schema
        if self.word == "list":
            inner = self.items.least_bytes if self.items is not None else 1
            return _limit(schema, "maxItems", (MAX_REQUEST - 2) // (inner + 1))
        if self.word == "map":
            inner = self.values.least_bytes if self.values is not None else 1
            return _limit(schema, "maxProperties", (MAX_REQUEST - 2) // (inner + 6))
        if self.word in ("string", "any"):
            return self._text_size(schema)
        return 1

    def _text_size(self, schema: Any) -> int:
        if schema.get("maxLength") is not None:
            return max(0, int(schema["maxLength"])) * (4 if self.word == "string" else 1)
        if schema.get("enum"):
            return max((len(value) for value in schema["enum"] if isinstance(value, str)), default=0)
        return _LONGEST.get(schema.get("format") or "", MAX_REQUEST - 2)


def _limit(schema: Any, keyword: str, otherwise: int) -> int:
    limit = schema.get(keyword)
    return otherwise if limit is None else max(0, int(limit))


def _visible(node: SchemaNode | None) -> CelShape | None:
    shape = CelShape(node) if node is not None else None
    return None if shape is None or shape.word == "hidden" else shape


def _meta() -> dict[str, CelShape]:
    """The fields that every resource root shows."""
    text = {"type": "string"}
    named = {"type": "object", "properties": {"name": text, "generateName": text}}
    return {
        "apiVersion": CelShape(compile_node(text)),
        "kind": CelShape(compile_node(text)),
        "metadata": CelShape(compile_node(named)),
    }


_META: dict[str, CelShape] = _meta()
