"""Sprig's functions on lists. None changes the list it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hortus.render.gotemplate.calls import Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.functions.conversions import elements, is_empty, nil_or, to_integer, to_text, to_texts
from hortus.render.gotemplate.values import (
    Lists,
    NilList,
    Strings,
    Struct,
    kind_name,
    wire_bytes,
)

_MOST_COMPARED = 1_000_000


def deep_equal(first: Any, second: Any) -> bool:
    """reflect.DeepEqual: the same types all the way down. Raises FunctionError for values without end."""
    return _equal(first, second, [_MOST_COMPARED])


def _equal(first: Any, second: Any, left: list[int]) -> bool:
    if type(first) is not type(second):
        return False
    if first is second and not isinstance(first, float):
        return True
    left[0] -= 1
    if left[0] < 0:
        raise FunctionError(f"values of more than {_MOST_COMPARED} entries are not compared")
    if isinstance(first, dict):
        return len(first) == len(second) and all(
            key in second and _equal(value, second[key], left) for key, value in first.items()
        )
    if isinstance(first, list):
        return len(first) == len(second) and all(_equal(a, b, left) for a, b in zip(first, second, strict=True))
    if isinstance(first, Struct):
        is_like = first.type_name == second.type_name and first.state == second.state
        return is_like and _equal(first.fields, second.fields, left)
    return bool(first == second)


def _contains(values: list[Any], wanted: Any) -> bool:
    return any(deep_equal(wanted, value) for value in values)


def append(values: Any, value: Any) -> list[Any]:
    return [*elements(values, "push on"), value]


def prepend(values: Any, value: Any) -> list[Any]:
    return [value, *elements(values, "prepend on")]


def first(values: Any) -> Any:
    found = elements(values, "find first on")
    return found[0] if found else None


def last(values: Any) -> Any:
    found = elements(values, "find last on")
    return found[-1] if found else None


def rest(values: Any) -> list[Any]:
    found = elements(values, "find rest on")
    return nil_or(list(found[1:]), found)


def initial(values: Any) -> list[Any]:
    found = elements(values, "find initial on")
    return nil_or(list(found[:-1]), found)


def reverse(values: Any) -> list[Any]:
    return list(reversed(elements(values, "find reverse on")))


def compact(values: Any) -> list[Any]:
    return [value for value in elements(values, "compact on") if not is_empty(value)]


def uniq(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in elements(values, "find uniq on"):
        if not _contains(found, value):
            found.append(value)
    return found


def without(values: Any, *omitted: Any) -> list[Any]:
    return [value for value in elements(values, "find without on") if not _contains(list(omitted), value)]


def has(wanted: Any, values: Any) -> bool:
    if values is None:
        return False
    found = elements(values, "find has on")
    return _contains(found, wanted)


def slice_list(values: Any, *bounds: Any) -> Any:
    if not isinstance(values, list | bytes):
        if values is None:
            elements(values, "")
        raise FunctionError(f"list should be type of slice or array but {kind_name(values)}")
    if not values:
        return None
    start = to_integer(bounds[0]) if bounds else 0
    end = to_integer(bounds[1]) if len(bounds) > 1 else len(values)
    if start < 0 or end < start or end > len(values):
        raise FunctionError("reflect.Value.Slice: slice index out of bounds")
    part = values[start:end]
    return part if isinstance(values, bytes) else type(values)(part)


def concat(*lists: Any) -> list[Any]:
    found: list[Any] = []
    for values in lists:
        if not isinstance(values, list | bytes):
            if values is None:
                elements(values, "")
            raise FunctionError(f"Cannot concat type {kind_name(values)} as list")
        found += elements(values, "concat")
    return found or NilList()


def chunk(size: int, values: Any) -> Lists:
    found = elements(values, "chunk")
    if size == 0:
        raise FunctionError("runtime error: makeslice: len out of range")
    if size < 0:
        raise FunctionError("runtime error: makeslice: len out of range")
    return Lists(list(found[at : at + size]) for at in range(0, len(found), size))


def sort_alpha(values: Any) -> Strings:
    if not isinstance(values, list | bytes):
        return Strings([to_text(values)])
    return Strings(sorted(to_texts(values), key=wire_bytes))


def _both(name: str, signature: str, call: Callable[..., Any]) -> list[tuple[str, str, Callable[..., Any]]]:
    return [(name, signature, call), (f"must{name[0].upper()}{name[1:]}", signature, call)]


LISTS: Functions = table(
    ("list", "...any", lambda *values: list(values)),
    ("tuple", "...any", lambda *values: list(values)),
    ("concat", "...any", concat),
    ("sortAlpha", "any", sort_alpha),
    ("deepEqual", "any, any", deep_equal),
    *_both("append", "any, any", append),
    *_both("push", "any, any", append),
    *_both("prepend", "any, any", prepend),
    *_both("first", "any", first),
    *_both("last", "any", last),
    *_both("rest", "any", rest),
    *_both("initial", "any", initial),
    *_both("reverse", "any", reverse),
    *_both("compact", "any", compact),
    *_both("uniq", "any", uniq),
    *_both("without", "any, ...any", without),
    *_both("has", "any, any", has),
    *_both("slice", "any, ...any", slice_list),
    *_both("chunk", "int, any", chunk),
)
