"""Objects of any kind, made from its schema, with one list, map, text or nesting of a chosen size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

Schema = Mapping[str, Any]
Object = dict[str, Any]
Path = tuple[str, ...]
"""From the root to a value: names of fields, `*` for the member of a list or a map."""

_DEEPEST = 14
_MOST_TOGETHER = 6
_TEXTS = {
    "date-time": "2026-01-01T00:00:00Z",
    "byte": "YQ==",
    "quantity": "1",
    "duration": "1s",
}


class Growth(NamedTuple):
    """One thing that grows in an object."""

    title: str
    paths: tuple[Path, ...]
    """The lists, maps or texts that grow, together."""
    text: str = ""
    """The repeated part of a text; empty for lists and maps."""


def sample(schema: Schema, number: int = 0) -> Any:
    """A small value of the schema: its required fields alone. Another number makes another value where one can be."""
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: sample(schema["properties"][name], number) for name in schema.get("required", ())}
        case "array":
            return [member(schema["items"], number)]
        case "integer" | "number":
            return number + 1
        case "boolean":
            return True
        case "string":
            return _TEXTS.get(schema.get("format", "")) or f"a{number}"
    return number + 1 if schema.get("x-kubernetes-int-or-string") else {}


def member(schema: Schema, number: int) -> Any:
    """A small member of a list, which its name distinguishes from others."""
    found = sample(schema, number)
    fields = schema.get("properties", {})
    texts = [name for name, field in fields.items() if _is_text(field) and "format" not in field]
    named = [name for name in ("name", "key", "uid", "type") if name in texts] or texts
    return found | {named[0]: f"a{number}"} if named else found


def growths(schema: Schema, seen: set[int]) -> Iterator[Growth]:
    """The lists, maps and texts of all structs that are not in `seen`, which it adds them to.

    All lists of a struct also grow together, since rules multiply them, and all but each one, since one may exclude
    others.
    """
    for path, struct in _structs(schema, (), 0):
        if id(struct) in seen:
            continue
        seen.add(id(struct))
        fields = struct["properties"]
        lists = tuple((*path, name) for name, field in fields.items() if _is_list(field) or _is_map(field))
        texts = tuple((*path, name) for name, field in fields.items() if _is_text(field))
        for one in lists:
            yield Growth(".".join(one), (one,))
        if len(lists) > 1:
            yield Growth(".".join((*path, "(lists)")), lists)
        for one in lists if 2 < len(lists) <= _MOST_TOGETHER else ():
            yield Growth(".".join((*path, f"(lists but {one[-1]})")), tuple(other for other in lists if other != one))
        for text in ("a", "a.", "1-") if texts else ():
            yield Growth(f"{'.'.join((*path, '(texts)'))} of {text!r}", texts, text)


def _structs(schema: Schema, path: Path, depth: int) -> Iterator[tuple[Path, Schema]]:
    if depth > _DEEPEST:
        return
    if schema.get("properties"):
        yield path, schema
        for name, field in schema["properties"].items():
            yield from _structs(field, (*path, name), depth + 1)
    for member in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(member, Mapping):
            yield from _structs(member, (*path, "*"), depth + 1)


def _is_list(schema: Schema) -> bool:
    return schema.get("type") == "array"


def _is_map(schema: Schema) -> bool:
    return isinstance(schema.get("additionalProperties"), Mapping)


def _is_text(schema: Schema) -> bool:
    return schema.get("type") == "string" and not schema.get("enum")


def grown(base: Object, schema: Schema, growth: Growth, size: int, first: int = 0) -> Object:
    """`base` with what grows in it at `size`; members are numbered from `first`."""
    for path in growth.paths:
        base = _with(base, schema, path, lambda found, below: _filled(found, below, growth, size, first))
    return base


def _filled(found: Any, schema: Schema, growth: Growth, size: int, first: int) -> Any:
    if growth.text:
        return growth.text * (size // len(growth.text))
    if _is_list(schema):
        more = [member(schema["items"], first + number) for number in range(size)]
        return [*found[:1], *more[1:]] if isinstance(found, list) and not first else more
    return {f"k{first + number}": sample(schema["additionalProperties"], number) for number in range(size)}


def _with(value: Any, schema: Schema, path: Path, fill: Callable[[Any, Schema], Any]) -> Any:
    if not path:
        return fill(value, schema)
    name, *rest = path
    if name != "*":
        value = value if isinstance(value, dict) else sample(schema)
        return value | {name: _with(value.get(name), schema["properties"][name], tuple(rest), fill)}
    if _is_list(schema):
        value = value if isinstance(value, list) and value else [None]
        return [_with(value[0], schema["items"], tuple(rest), fill), *value[1:]]
    value = value if isinstance(value, dict) and value else {"k": None}
    return {key: _with(item, schema["additionalProperties"], tuple(rest), fill) for key, item in value.items()}


def part(obj: Object, growth: Growth) -> Object:
    """The fields of the object that lead to what grows: a patch."""
    return {name: obj[name] for name in {path[0] for path in growth.paths}}


def deep(levels: int, inner: Any = 1, name: str = "x") -> Any:
    for _ in range(levels):
        inner = {name: inner}
    return inner
