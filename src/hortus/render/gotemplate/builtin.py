"""The functions that Go's text/template itself has."""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence
from typing import Any

from hortus.render.gotemplate.calls import Function, Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.formatting import sprint, sprintf, sprintln, text_of
from hortus.render.gotemplate.values import (
    ABSENT,
    NIL_TYPES,
    Int64,
    Ints,
    Lists,
    Strings,
    Struct,
    Uint8,
    is_true,
    length,
    type_name,
    wire_bytes,
    wire_text,
    zero_element,
)
from hortus.schema.quoting import is_printed

_KINDS = {bool: "bool", int: "int", Int64: "int", Uint8: "uint", float: "float", str: "string"}
_SLICES: dict[type, type] = {Strings: Strings, Ints: Ints, Lists: Lists}
_HTML = str.maketrans({'"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;", "\0": "\ufffd"})
_SCRIPT = {
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
    "<": "\\u003C",
    ">": "\\u003E",
    "&": "\\u0026",
    "=": "\\u003D",
}


def _bad_comparison() -> FunctionError:
    return FunctionError("invalid type for comparison")


def equal(first: Any, *others: Any) -> bool:
    """eq: whether the first equals any of the others."""
    if not others:
        raise FunctionError("missing argument for comparison")
    return any(_equal(first, other) for other in others)


def _equal(first: Any, second: Any) -> bool:
    kind, other = _KINDS.get(type(first)), _KINDS.get(type(second))
    if kind != other:
        if {kind, other} == {"int", "uint"}:
            return bool(int(first) == int(second))
        if first is not None and second is not None:
            raise FunctionError(f"incompatible types for comparison: {type_name(first)} and {type_name(second)}")
        return False
    if kind is not None:
        return bool(first == second)
    return _equal_composite(first, second)


def _equal_composite(first: Any, second: Any) -> bool:
    if first is None or second is None or type(first) in NIL_TYPES or type(second) in NIL_TYPES:
        return _is_nil(first) == _is_nil(second)
    if _family(first) != _family(second):
        raise FunctionError(
            f"non-comparable types {sprintf('%s', [first])}: {type_name(first)}, {type_name(second)}: {text_of(second)}"
        )
    if isinstance(second, Struct) and second.is_comparable:
        if first is second or first.pointer or first.type_name != second.type_name:
            return first is second
        return bool(first.fields == second.fields and first.state == second.state)
    raise FunctionError(f"non-comparable type {sprintf('%s', [second])}: {type_name(second)}")


def _is_nil(value: Any) -> bool:
    return value is None or type(value) in NIL_TYPES


def _family(value: Any) -> str:
    return "map" if isinstance(value, dict) else "slice" if isinstance(value, list | bytes) else "struct"


def not_equal(first: Any, second: Any) -> bool:
    return not equal(first, second)


def less(first: Any, second: Any) -> bool:
    """lt. Raises FunctionError for what has no order."""
    kind, other = _KINDS.get(type(first)), _KINDS.get(type(second))
    if kind is None or other is None:
        raise _bad_comparison()
    if kind != other and {kind, other} != {"int", "uint"}:
        raise FunctionError(f"incompatible types for comparison: {type_name(first)} and {type_name(second)}")
    if kind == "bool":
        raise _bad_comparison()
    if kind == "string" and not (first.isascii() and second.isascii()):
        return wire_bytes(first) < wire_bytes(second)
    return bool(first < second)


def less_or_equal(first: Any, second: Any) -> bool:
    return less(first, second) or equal(first, second)


def greater(first: Any, second: Any) -> bool:
    return not less_or_equal(first, second)


def greater_or_equal(first: Any, second: Any) -> bool:
    return not less(first, second)


def len_of(value: Any) -> int:
    """len: bytes of a string, entries of the rest."""
    if type(value) is str:
        return length(value)
    if isinstance(value, list | dict | bytes):
        return len(value)
    if value is None:
        raise FunctionError("len of nil pointer")
    if value is ABSENT:
        raise FunctionError("reflect: call of reflect.Value.Type on zero Value")
    raise FunctionError(f"len of type {type_name(value)}")


def _position(index: Any, bound: int) -> int:
    if index is None:
        raise FunctionError("cannot index slice/array with nil")
    if type(index) not in (int, Int64, Uint8):
        raise FunctionError(f"cannot index slice/array with type {type_name(index)}")
    if index < 0 or index > bound:
        raise FunctionError(f"index out of range: {index}")
    return int(index)


def index_of(item: Any, *indexes: Any) -> Any:
    """index x 1 "b": x[1]["b"]."""
    if item is None:
        raise FunctionError("index of untyped nil")
    for index in indexes:
        if item is None:
            raise FunctionError("index of nil pointer")
        item = _indexed(item, index)
    return item


def _indexed(item: Any, index: Any) -> Any:
    if isinstance(item, dict):
        if type(index) is not str:
            if index is None:
                raise FunctionError("value is nil; should be of type string")
            raise FunctionError(f"value has type {type_name(index)}; should be string")
        return item[index] if index in item else zero_element(item)
    if type(item) is str:
        item = wire_bytes(item)
    elif not isinstance(item, list | bytes):
        raise FunctionError(f"can't index item of type {type_name(item)}")
    at = _position(index, len(item))
    if at == len(item):
        raise FunctionError(
            "reflect: string index out of range" if isinstance(item, bytes) else "reflect: slice index out of range"
        )
    return Uint8(item[at]) if isinstance(item, bytes) else item[at]


def slice_of(item: Any, *indexes: Any) -> Any:
    """slice x 1 2: x[1:2]."""
    if item is None:
        raise FunctionError("slice of untyped nil")
    if len(indexes) > 3:
        raise FunctionError(f"too many slice indexes: {len(indexes)}")
    is_text = type(item) is str
    if is_text and len(indexes) == 3:
        raise FunctionError("cannot 3-index slice a string")
    if not is_text and not isinstance(item, list | bytes):
        raise FunctionError(f"can't slice item of type {type_name(item)}")
    whole = wire_bytes(item) if is_text else item
    bounds = [0, len(whole)]
    found = [_position(index, len(whole)) for index in indexes]
    bounds[: len(found)] = found
    if bounds[0] > bounds[1]:
        raise FunctionError(f"invalid slice index: {bounds[0]} > {bounds[1]}")
    if len(bounds) > 2 and bounds[1] > bounds[2]:
        raise FunctionError(f"invalid slice index: {bounds[1]} > {bounds[2]}")
    part = whole[bounds[0] : bounds[1]]
    if is_text:
        return wire_text(part)
    return _SLICES.get(type(item), list)(part) if isinstance(item, list) else part


def _joined(values: Sequence[Any]) -> str:
    if len(values) == 1 and type(values[0]) is str:
        return values[0]
    return sprint(["<no value>" if value is None else value for value in values])


def html(*values: Any) -> str:
    return _joined(values).translate(_HTML)


def js(*values: Any) -> str:
    return "".join(_script(char) for char in _joined(values))


def _script(char: str) -> str:
    found = _SCRIPT.get(char)
    if found:
        return found
    if char < " ":
        return f"\\u00{ord(char):02X}"
    if char.isascii() or is_printed(char):
        return char
    return f"\\u{ord(char) if not 0xD800 <= ord(char) < 0xE000 else 0xFFFD:04X}"


def urlquery(*values: Any) -> str:
    return urllib.parse.quote_plus(wire_bytes(_joined(values)), safe="")


def call(name: str, value: Any = None, *_others: Any) -> Any:
    """call: no value of a template is a function. `name` is the argument as written."""
    if value is None:
        raise FunctionError("call of nil")
    raise FunctionError(f"non-function {name} of type {type_name(value)}")


def _never(*_values: Any) -> Any:
    raise AssertionError("and, or are part of the evaluator")


def _print(*values: Any) -> str:
    return sprint(values)


def _println(*values: Any) -> str:
    return sprintln(values)


def _printf(template: str, *values: Any) -> str:
    return sprintf(template, values)


BUILTIN: Functions = table(
    ("html", "...any", html),
    ("index", "value, ...value", index_of),
    ("slice", "value, ...value", slice_of),
    ("js", "...any", js),
    ("len", "nothing", len_of),
    ("not", "value", lambda value: not is_true(value)),
    ("print", "...any", _print),
    ("printf", "string, ...any", _printf),
    ("println", "...any", _println),
    ("urlquery", "...any", urlquery),
    ("eq", "value, ...value", equal),
    ("ge", "value, value", greater_or_equal),
    ("gt", "value, value", greater),
    ("le", "value, value", less_or_equal),
    ("lt", "value, value", less),
    ("ne", "value, value", not_equal),
)
BUILTIN["call"] = Function("call", "value, ...value", call, special="call")
for _name in ("and", "or"):
    BUILTIN[_name] = Function(_name, "value, ...value", _never, special=_name)
