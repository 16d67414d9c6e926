"""The form check of applied configurations against their schema, with kube-apiserver's messages.

Only the properties that merging depends on are checked: types of values, unknown fields, keys of list items. Validation
checks everything else. Texts: structured-merge-diff, package typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.schema.merge.elements import describe, go_text
from hortus.schema.merge.extraction import UnkeyedItem, item_element
from hortus.schema.merge.fieldset import Path, path_text
from hortus.schema.merge.types import MergeType
from hortus.schema.quoting import quote

Value = Any
_TEXTS = ("string", "untyped")
_Problems = list[tuple[Path, str]]


def problems_of(value: Mapping[str, Value], root: MergeType, *, repeats: bool = False) -> str:
    """Everything wrong with the form of `value` as one text, empty when nothing is. `repeats` allows repeated items."""
    found: _Problems = []
    _check(value, root, (), found, repeats)
    lines = [f"{path_text(path)}: {what}" if path else what for path, what in found]
    return lines[0] if len(lines) == 1 else "\n  ".join(["errors:", *lines]) if lines else ""


def _check(value: Value, kind: MergeType, path: Path, found: _Problems, repeats: bool) -> None:
    if value is None:
        return
    if value.__class__ is dict and kind.is_map:
        _check_map(value, kind, path, found, repeats)
    elif value.__class__ is list and kind.is_list:
        _check_list(value, kind, path, found, repeats)
    elif (problem := _wrong_form(value, kind)) is not None:
        found.append((path, problem))


def _check_map(value: Mapping[str, Value], kind: MergeType, path: Path, found: _Problems, repeats: bool) -> None:
    declared, element = kind.fields, kind.element
    for key, item in value.items():
        field = (declared[key] if declared is not None else None) or element
        if field is None:
            found.append(((*path, "f:" + key), "field not declared in schema"))
            return
        if item.__class__ is not str or field.scalar not in _TEXTS:
            _check(item, field, (*path, "f:" + key), found, repeats)


def _check_list(value: list[Value], kind: MergeType, path: Path, found: _Problems, repeats: bool) -> None:
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if kind.list_type != "atomic":
            try:
                element = item_element(item, kind)
            except UnkeyedItem as error:
                found.append((path, f"element {index}: {error}"))
                return
            if element in seen and not repeats:
                found.append((path, f"duplicate entries for key {describe(element)}"))
            seen.add(element)
        _check(item, kind.items, (*path, element), found, repeats)


def _wrong_form(value: Value, kind: MergeType) -> str | None:
    """The problem of a value that is none of the containers its type allows; None when it fits."""
    if kind.is_map and not (kind.scalar and not isinstance(value, dict | list)):
        return f"expected map, got {_go(value)}"
    if kind.scalar:
        return _wrong_scalar(value, kind.scalar)
    return f"expected list, got {_go(value)}"


def _wrong_scalar(value: Value, kind: str) -> str | None:
    if kind == "string":
        return (
            None
            if isinstance(value, str)
            else f"expected string, got &value.valueUnstructured{{Value:{_source(value)}}}"
        )
    if kind == "boolean":
        return None if isinstance(value, bool) else f"expected boolean, got {_go(value)}"
    if kind == "numeric":
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        return None if numeric else f"expected numeric (int or float), got {_go_type(value)}"
    return f"expected any scalar, got {_go(value)}" if isinstance(value, dict | list) else None


def _go_type(value: Value) -> str:
    names = {str: "string", bool: "bool", list: "[]interface {}", dict: "map[string]interface {}"}
    return names.get(value.__class__, "nil")


def _go(value: Value) -> str:
    return f"&{{{go_text(value)}}}"


def _source(value: Value) -> str:
    """A value in Go's source form (%#v)."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        pairs = ", ".join(f"{quote(key)}:{_source(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{pairs}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(_source, value)) + "}"
    return "interface {}(nil)" if value is None else go_text(value)
