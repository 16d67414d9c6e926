"""Objects as expressions see them: identifiers for names, doubles where the schema has `number`, else unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hortus.schema.cel.escaping import escaped
from hortus.schema.cel.shapes import CelShape

Convert = Callable[[Any], Any]


def converter(shape: CelShape) -> Convert | None:
    """A function that converts values of `shape` for an expression; None when they need no conversion."""
    if shape.word == "double":
        return lambda value: float(value) if type(value) is int else value
    if shape.word == "int":
        return lambda value: int(value) if type(value) is float else value
    if shape.word == "list" and shape.items is not None:
        return _for_list(converter(shape.items))
    if shape.word == "map" and shape.values is not None:
        return _for_map(converter(shape.values))
    return fields_converter(shape) if shape.word == "object" else None


def fields_converter(shape: CelShape, only: frozenset[str] | None = None) -> Convert | None:
    """A converter for objects; with `only`, just the fields of these identifiers are passed on."""
    changed: list[tuple[str, str, Convert | None]] = []
    for name in shape.node.properties:
        identifier = escaped(name)
        if identifier is None or (only is not None and identifier not in only):
            continue
        inner = converter(shape.fields[identifier]) if identifier in shape.fields else None
        if only is not None or inner is not None or identifier != name:
            changed.append((name, identifier, inner))
    if only is None:
        return _rewriting(changed) if changed else None
    known = {name for name, _, _ in changed}
    changed += [(name, name, None) for name in sorted(only - known) if name in shape.fields]
    return _picking(changed)


def _picking(fields: list[tuple[str, str, Convert | None]]) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is not dict:
            return value
        return {
            identifier: value[name] if inner is None else inner(value[name])
            for name, identifier, inner in fields
            if name in value
        }

    return convert


def _rewriting(fields: list[tuple[str, str, Convert | None]]) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is not dict:
            return value
        found = dict(value)
        for name, identifier, inner in fields:
            if name in found:
                item = found.pop(name)
                found[identifier] = item if inner is None else inner(item)
        return found

    return convert


def _for_list(inner: Convert | None) -> Convert | None:
    if inner is None:
        return None
    return lambda value: [inner(item) for item in value] if type(value) is list else value


def _for_map(inner: Convert | None) -> Convert | None:
    if inner is None:
        return None
    return lambda value: {name: inner(item) for name, item in value.items()} if type(value) is dict else value
