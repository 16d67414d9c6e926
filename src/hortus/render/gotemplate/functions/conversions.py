"""Sprig's conversions to numbers (spf13/cast) and to text (fmt). A value that cannot be converted is 0."""

from __future__ import annotations

import math
from typing import Any

from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.formatting import text_of
from hortus.render.gotemplate.numbers import INT64_MAX, INT64_MIN, parse_float, parse_integer
from hortus.render.gotemplate.values import NilList, NilStrings, Strings, Struct, Uint8, kind_name, wire_text

_LOWEST = INT64_MIN
"""The result of a float beyond int64 on amd64."""


def to_integer(value: Any) -> int:
    """cast.ToInt64."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if math.isnan(value) or not INT64_MIN <= value < -INT64_MIN:
            return _LOWEST
        return int(value)
    if isinstance(value, str):
        found = parse_integer(_without_zero_fraction(value))
        return found if found is not None and INT64_MIN <= found <= INT64_MAX else 0
    return 0


def _without_zero_fraction(text: str) -> str:
    head, point, tail = text.rpartition(".")
    return head if point and tail and not tail.strip("0") else text


def to_float(value: Any) -> float:
    """cast.ToFloat64."""
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, str):
        found = parse_float(value)
        if found is not None:
            return found
        word = value.lower().lstrip("+-")
        if word in ("inf", "infinity"):
            return -math.inf if value.startswith("-") else math.inf
        return math.nan if value.lower() == "nan" else 0.0
    return 0.0


def to_text(value: Any) -> str:
    """sprig's strval."""
    if type(value) is str:
        return str(value)
    if isinstance(value, bytes):
        return wire_text(value)
    return text_of(value)


def to_texts(value: Any) -> list[str]:
    """sprig's strslice: the entries of a list as text, without nils; one entry of what is no list."""
    if type(value) in (Strings, NilStrings):
        return list(value)
    if isinstance(value, list | bytes):
        return [to_text(part) for part in value if part is not None]
    return [] if value is None else [to_text(value)]


def is_empty(value: Any) -> bool:
    """sprig's empty: zero, false, nil, and what has no entries. A struct never is."""
    return not isinstance(value, Struct) and not value


def elements(value: Any, verb: str) -> list[Any]:
    """The entries of a list. Raises FunctionError in sprig's words."""
    if isinstance(value, list):
        return value
    if isinstance(value, bytes):
        return [Uint8(part) for part in value]
    if value is None:
        raise FunctionError("runtime error: invalid memory address or nil pointer dereference")
    raise FunctionError(f"Cannot {verb} type {kind_name(value)}")


def nil_or(found: list[Any], source: list[Any]) -> list[Any]:
    """A nil slice when the source was empty."""
    return found if source else NilList()


def bounded(size: int, limit: int = 16 << 20) -> None:
    """Refuse to build a text of `size` characters. Raises FunctionError."""
    if size > limit:
        raise FunctionError(f"the result would be longer than {limit} characters")
