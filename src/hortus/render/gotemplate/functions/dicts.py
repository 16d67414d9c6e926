"""Sprig's functions on maps. `set`, `unset` and the merges change the map they are given, as in sprig."""

from __future__ import annotations

from typing import Any

from hortus.render.gotemplate.calls import Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.functions.conversions import is_empty, to_text
from hortus.render.gotemplate.values import NilMap, Strings, type_name

_DEEPEST = 500
_MOST_ENTRIES = 500_000


def make(*pairs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for at in range(0, len(pairs), 2):
        found[to_text(pairs[at])] = pairs[at + 1] if at + 1 < len(pairs) else ""
    return found


def get(values: dict[str, Any], key: str) -> Any:
    return values.get(key, "")


def put(values: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    if isinstance(values, NilMap):
        raise FunctionError("assignment to entry in nil map")
    values[key] = value
    return values


def unset(values: dict[str, Any], key: str) -> dict[str, Any]:
    values.pop(key, None)
    return values


def pluck(key: str, *maps: dict[str, Any]) -> list[Any]:
    return [values[key] for values in maps if key in values]


def keys(*maps: dict[str, Any]) -> Strings:
    return Strings(key for values in maps for key in values)


def pick(values: dict[str, Any], *wanted: str) -> dict[str, Any]:
    return {key: values[key] for key in wanted if key in values}


def omit(values: dict[str, Any], *unwanted: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in unwanted}


def dig(*path: Any) -> Any:
    """dig "a" "b" default map: map.a.b, or the default where a key is not there."""
    if len(path) < 3:
        raise FunctionError("dig needs at least three arguments")
    *names, default, found = path
    _as_map(found)
    for name in names:
        if type(name) is not str:
            raise FunctionError(f"interface conversion: interface {{}} is {_go_name(name)}, not string")
    for name in names:
        found = _as_map(found)
        if name not in found:
            return default
        found = found[name]
    return found


def _as_map(value: Any) -> dict[str, Any]:
    if type(value) not in (dict, NilMap):
        raise FunctionError(f"interface conversion: interface {{}} is {_go_name(value)}, not map[string]interface {{}}")
    found: dict[str, Any] = value
    return found


def _go_name(value: Any) -> str:
    return "nil" if value is None else type_name(value)


def merge(target: dict[str, Any], *sources: dict[str, Any]) -> dict[str, Any]:
    """mergo: what is empty in the target is filled from the sources."""
    return _merged(target, sources, overwrite=False)


def merge_overwrite(target: dict[str, Any], *sources: dict[str, Any]) -> dict[str, Any]:
    return _merged(target, sources, overwrite=True)


def _merged(target: dict[str, Any], sources: tuple[dict[str, Any], ...], *, overwrite: bool) -> dict[str, Any]:
    if isinstance(target, NilMap):
        target = {}
    left = [_MOST_ENTRIES]
    for source in sources:
        _merge_into(target, source, overwrite, 0, left)
    return target


def _merge_into(
    target: dict[str, Any],
    source: dict[str, Any],
    overwrite: bool,
    depth: int,
    left: list[int],
) -> None:
    _spend(left, len(source))
    if depth > _DEEPEST:
        raise FunctionError(f"maps are nested deeper than {_DEEPEST} levels")
    if target is source:
        return
    for key, value in source.items():
        if value is None:
            if overwrite:
                target[key] = None
            continue
        known = target.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            _merge_into(known, value, overwrite, depth + 1, left)
            if known or isinstance(known, NilMap):
                continue
        if overwrite or key not in target or is_empty(known):
            target[key] = value


def deep_copy(value: Any) -> Any:
    if value is None:
        raise FunctionError("reflect: call of reflect.Value.Type on zero Value")
    return _copied(value, 0, [_MOST_ENTRIES])


def _spend(left: list[int], entries: int) -> None:
    """Count entries: a value may hold itself many times over."""
    left[0] -= entries + 1
    if left[0] < 0:
        raise FunctionError(f"values of more than {_MOST_ENTRIES} entries are not copied or merged")


def _copied(value: Any, depth: int, left: list[int]) -> Any:
    if depth > _DEEPEST:
        raise FunctionError(f"values are nested deeper than {_DEEPEST} levels")
    if isinstance(value, dict | list):
        _spend(left, len(value))
    if isinstance(value, dict):
        return type(value)([(key, _copied(part, depth + 1, left)) for key, part in value.items()])
    if isinstance(value, list):
        return type(value)([_copied(part, depth + 1, left) for part in value])
    return value


def _default(default: Any, *given: Any) -> Any:
    return default if not given or is_empty(given[0]) else given[0]


def _coalesce(*values: Any) -> Any:
    return next((value for value in values if not is_empty(value)), None)


def _ternary(yes: Any, no: Any, condition: bool) -> Any:
    return yes if condition else no


DICTS: Functions = table(
    ("dict", "...any", make),
    ("get", "map, string", get),
    ("set", "map, string, any", put),
    ("unset", "map, string", unset),
    ("hasKey", "map, string", lambda values, key: key in values),
    ("pluck", "string, ...map", pluck),
    ("keys", "...map", keys),
    ("values", "map", lambda values: list(values.values())),
    ("pick", "map, ...string", pick),
    ("omit", "map, ...string", omit),
    ("merge", "map, ...map", merge),
    ("mustMerge", "map, ...map", merge),
    ("mergeOverwrite", "map, ...map", merge_overwrite),
    ("mustMergeOverwrite", "map, ...map", merge_overwrite),
    ("dig", "...any", dig),
    ("deepCopy", "any", deep_copy),
    ("mustDeepCopy", "any", deep_copy),
    ("default", "any, ...any", _default),
    ("empty", "any", is_empty),
    ("coalesce", "...any", _coalesce),
    ("all", "...any", lambda *values: not any(map(is_empty, values))),
    ("any", "...any", lambda *values: not all(map(is_empty, values))),
    ("ternary", "any, any, bool", _ternary),
)
