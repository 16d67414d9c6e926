"""Random structural schemas, and objects that fit them. Names and values come from small sets, so that they meet."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]
Value = Any

NAMES = ("a", "b", "c", "d")
TEXTS = ("", "x", "y", "a<b>&", 'q"\\', "é")
NUMBERS = (0, 1, 2, 10, 80, 443)


def scalars() -> st.SearchStrategy[Schema]:
    return st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "format": "date-time"},
            {"type": "integer"},
            {"type": "boolean"},
            {"type": "number"},
            {"x-kubernetes-int-or-string": True},
        ]
    )


def schemas(depth: int = 3) -> st.SearchStrategy[Schema]:
    if depth == 0:
        return scalars()
    below = st.deferred(lambda: schemas(depth - 1))
    return st.one_of(
        scalars(),
        objects(below),
        maps(below),
        atomic_lists(below),
        sets(),
        keyed_lists(below),
        st.just({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        st.just({"x-kubernetes-preserve-unknown-fields": True}),
    )


def objects(below: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    properties = st.dictionaries(st.sampled_from(NAMES), below, min_size=1, max_size=4)
    return st.builds(
        lambda fields, atomic: {"type": "object", "properties": fields, **atomic},
        properties,
        st.sampled_from([{}, {}, {}, {"x-kubernetes-map-type": "atomic"}]),
    )


def maps(below: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.builds(
        lambda inner, atomic: {"type": "object", "additionalProperties": inner, **atomic},
        below,
        st.sampled_from([{}, {}, {"x-kubernetes-map-type": "granular"}, {"x-kubernetes-map-type": "atomic"}]),
    )


def atomic_lists(below: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.builds(
        lambda inner, kind: {"type": "array", "items": inner, **kind},
        below,
        st.sampled_from([{}, {"x-kubernetes-list-type": "atomic"}]),
    )


def sets() -> st.SearchStrategy[Schema]:
    items = st.sampled_from([{"type": "string"}, {"type": "integer"}])
    return st.builds(lambda inner: {"type": "array", "items": inner, "x-kubernetes-list-type": "set"}, items)


@st.composite
def keyed_lists(draw: st.DrawFn, below: st.SearchStrategy[Schema]) -> Schema:
    """A list map by `id`, or by `id` and `port` with `port` defaulted."""
    fields = draw(st.dictionaries(st.sampled_from(NAMES), below, max_size=3))
    keys = ["id"]
    fields["id"] = {"type": "string"}
    if draw(st.booleans()):
        keys.append("port")
        fields["port"] = {"type": "integer", "default": 80}
    return {
        "type": "array",
        "items": {"type": "object", "properties": fields},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
    }


def scalar_value(draw: st.DrawFn, kind: str) -> Value:
    if kind == "string":
        return draw(st.sampled_from(TEXTS))
    if kind == "boolean":
        return draw(st.booleans())
    if kind == "number":
        return draw(st.sampled_from((0.5, 1, 2.25)))
    return draw(st.sampled_from(NUMBERS))


@st.composite
def values(draw: st.DrawFn, schema: Schema, *, repeats: bool = False, depth: int = 4) -> Value:
    """A value of `schema`; `repeats` allows a list item twice where keys should tell them apart."""
    if draw(st.integers(0, 24)) == 0:
        return None
    kind = schema.get("type")
    if kind is None:
        return draw(anything(depth))
    if kind == "object":
        return draw(object_values(schema, repeats=repeats, depth=depth))
    if kind == "array":
        return draw(list_values(schema, repeats=repeats, depth=depth))
    return scalar_value(draw, kind)


def anything(depth: int) -> st.SearchStrategy[Value]:
    simple = st.sampled_from([None, True, False, 1, 0, "x", "", 0.5])
    if depth <= 0:
        return simple
    inner = st.deferred(lambda: anything(depth - 2))
    return st.one_of(simple, st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3))


@st.composite
def object_values(draw: st.DrawFn, schema: Schema, *, repeats: bool = False, depth: int = 4) -> dict[str, Value]:
    declared: dict[str, Schema] = schema.get("properties") or {}
    result = {}
    for name, inner in declared.items():
        if draw(st.integers(0, 3)) > 0:
            result[name] = draw(values(inner, repeats=repeats, depth=depth - 1))
    extra = schema.get("additionalProperties")
    if extra is not None or (schema.get("x-kubernetes-preserve-unknown-fields") and not declared):
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3)):
            inner_values = anything(depth - 1) if extra is None else values(extra, repeats=repeats, depth=depth - 1)
            result[name] = draw(inner_values)
    return result


@st.composite
def list_values(draw: st.DrawFn, schema: Schema, *, repeats: bool = False, depth: int = 4) -> list[Value]:
    kind = schema.get("x-kubernetes-list-type", "atomic")
    if kind == "atomic":
        return draw(st.lists(values(schema["items"], repeats=repeats, depth=depth - 1), max_size=2))
    if kind == "set":
        choices = TEXTS if schema["items"]["type"] == "string" else NUMBERS
        unique = not (repeats and draw(st.integers(0, 4)) == 0)
        return draw(st.lists(st.sampled_from(choices), max_size=3, unique=unique))
    return draw(keyed_values(schema, repeats=repeats, depth=depth))


@st.composite
def keyed_values(draw: st.DrawFn, schema: Schema, *, repeats: bool = False, depth: int = 4) -> list[Value]:
    by_port = "port" in schema["x-kubernetes-list-map-keys"]
    ports = st.sampled_from((None, 80, 9)) if by_port else st.none()
    keys = draw(st.lists(st.tuples(st.sampled_from(NAMES), ports), max_size=3))
    items: list[Value] = []
    seen = set()
    may_repeat = repeats and draw(st.integers(0, 4)) == 0
    for name, port in keys:
        key = (name, 80 if by_port and port is None else port)
        if key in seen and not may_repeat:
            continue
        seen.add(key)
        item = draw(object_values(schema["items"], repeats=repeats, depth=depth - 1))
        item = {field: value for field, value in item.items() if field not in ("id", "port")} | {"id": name}
        items.append(item if port is None else item | {"port": port})
    return items
