"""Path elements of a field set, as the strings that FieldsV1 uses for its keys.

`f:name` is a field, `k:{...}` a list item by its associative keys, `v:...` an item of a set, `i:3` an index. Each
element has one spelling, so that a plain dict can be the set: two elements are the same if and only if their strings
are. The spelling is that of Go's serialiser (HTML characters escaped, keys sorted, whole floats without a fraction), so
that the output equals kube-apiserver's byte for byte. Source: KEP-555, "FieldsV1" in
k8s.io/apimachinery/pkg/apis/meta/v1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import orjson

from hortus.schema.quoting import quote

SELF = "."
"""Inside a node: the node itself is a member too, not only its content."""

_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_GO_CONTROLS = {"\\b": "\\u0008", "\\f": "\\u000c"}
_Rank = tuple[int, Any]


def json_text(value: object) -> str:
    """`value` as Go's JSON encoder spells it inside a path element."""
    if isinstance(value, str):
        return _string_text(value)
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_string_text(key)}:{json_text(value[key])}" for key in sorted(value)) + "}"
    return "null" if value is None else str(value)


def _string_text(value: str) -> str:
    text = orjson.dumps(value).decode()
    if "\\" in text:
        text = _go_controls(text)
    for plain, escaped in _HTML.items():
        if plain in text:
            text = text.replace(plain, escaped)
    return text


def _go_controls(text: str) -> str:
    pieces = text.split("\\\\")
    for short, long in _GO_CONTROLS.items():
        pieces = [piece.replace(short, long) for piece in pieces]
    return "\\\\".join(pieces)


def _float_text(value: float) -> str:
    size = abs(value)
    if value == math.trunc(value) and size < 1e21:
        return str(int(value))
    if 1e-6 <= size < 1e21:
        return format(Decimal(repr(value)), "f")
    return repr(value)


@functools.lru_cache(maxsize=8192, typed=True)
def set_element(value: str | int | float | bool) -> str:
    """The element of a scalar in a set."""
    return "v:" + json_text(value)


@functools.lru_cache(maxsize=8192, typed=True)
def key_element(name: str, value: str | int | float | bool) -> str:
    """The element of a list item with one associative key."""
    return f"k:{{{_string_text(name)}:{json_text(value)}}}"


def keys_element(keys: Iterable[tuple[str, object]]) -> str:
    """The element of a list item by several associative keys."""
    return "k:{" + ",".join(f"{_string_text(name)}:{json_text(value)}" for name, value in sorted(keys)) + "}"


@functools.lru_cache(maxsize=8192)
def canonical(element: str) -> str | None:
    """`element` in its one spelling, or None for a kind of element that is unknown (to be dropped, as upstream does).

    Raises ValueError for one that cannot be read.
    """
    kind, colon, text = element[:1], element[1:2], element[2:]
    if colon != ":":
        raise ValueError(f"missing colon: {element}" if len(element) > 1 else "key must be 2 characters long:")
    if kind == "f":
        return element
    if kind == "v":
        return "v:" + json_text(orjson.loads(text))
    if kind == "k":
        keys = orjson.loads(text)
        if not isinstance(keys, dict):
            raise ValueError(f"keys of a list item must be an object: {element}")
        return keys_element(keys.items())
    return f"i:{int(text)}" if kind == "i" else None


def in_order(elements: Iterable[str]) -> list[str]:
    """Elements as Go's serialiser orders them: `.`, fields, keys, values, indexes; numbers by size, not by digits."""
    ordered = sorted(elements)
    if ordered and ordered[-1] > "g":
        ordered.sort(key=_rank)
    return ordered


@functools.lru_cache(maxsize=8192)
def _rank(element: str) -> _Rank:
    kind = element[:1]
    if kind == "k":
        keys = orjson.loads(element[2:])
        return 2, tuple((name, _value_rank(keys[name])) for name in sorted(keys))
    if kind == "v":
        return 3, _value_rank(orjson.loads(element[2:]))
    if kind == "i":
        return 4, int(element[2:])
    return (0, "") if element == SELF else (1, element)


def _value_rank(value: object) -> _Rank:
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    if isinstance(value, str):
        return 1, value
    if isinstance(value, list):
        return 3, tuple(map(_value_rank, value))
    if isinstance(value, dict):
        return 4, tuple((name, _value_rank(value[name])) for name in sorted(value))
    return 5, 0


def describe(element: str) -> str:
    """The element as a conflict shows it: `.replicas`, `[name="web"]`, `[="a"]`, `[3]`."""
    kind, text = element[:1], element[2:]
    if kind == "f":
        return "." + text
    if kind == "k":
        keys = orjson.loads(text)
        return "[" + ",".join(f"{name}={_shown(keys[name])}" for name in sorted(keys)) + "]"
    if kind == "v":
        return f"[={_shown(orjson.loads(text))}]"
    return f"[{text}]"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _shown_number(float(value))
    if isinstance(value, list):
        return "[" + ",".join(map(_shown, value)) + "]"
    if isinstance(value, dict):
        return "".join(f"{name}={_shown(value[name])}" for name in sorted(value))
    return "null"


def _shown_number(value: float) -> str:
    # Go's %v of a float64: shortest digits, the exponent form below 1e-4 and from a million on.
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    if not isinstance(exponent, int):
        return repr(value)
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return _float_text(value)
    text = "".join(map(str, digits)).rstrip("0")
    power = len(digits) + exponent - 1
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{'-' if sign else ''}{text[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02d}"


def go_text(value: object) -> str:
    """`value` as Go prints it in a message (%v): `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _shown_number(value)
    return "<nil>" if value is None else str(value)
