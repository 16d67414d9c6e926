"""Random specs out of the CRDs' schemas, and one for each field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from hortus.kube.objects import Object

TEXTS = st.one_of(st.sampled_from(["a", "edge", "", "true", "key", "42", "-", "a.b", "x/y", "ü"]), st.text(max_size=8))
_QUANTITY = st.from_regex(r"\A[0-9]{1,3}(\.[0-9])?(Mi|Gi|m|k|e3|)\Z")
_MOST_FIELDS = 5


def specs(schema: Object) -> st.SearchStrategy[Any]:
    """Values that a schema may accept: any of its fields, odd texts, numbers at the ends of their range."""
    if schema.get("x-kubernetes-int-or-string"):
        return st.one_of(_QUANTITY, st.integers(-(2**31), 2**31 - 1))
    match schema.get("type"):
        case "object":
            return _objects(schema)
        case "array":
            return st.lists(st.deferred(lambda: specs(schema["items"])), max_size=3)
        case "boolean":
            return st.booleans()
        case "integer":
            bits = 31 if schema.get("format") == "int32" else 63
            return st.one_of(st.integers(0, 9), st.integers(-(2**bits), 2**bits - 1))
    if schema.get("format") == "byte":
        return st.sampled_from(["", "YQ==", "YWI=", "not base64", "é"])
    if "pattern" in schema:
        return st.one_of(st.from_regex(schema["pattern"]), TEXTS)
    return TEXTS


def _objects(schema: Object) -> st.SearchStrategy[Any]:
    properties: Object = schema.get("properties", {})
    if not properties:
        values = schema.get("additionalProperties")
        inner = specs(values) if isinstance(values, dict) else TEXTS
        return st.dictionaries(TEXTS, inner, max_size=3)
    required = set(schema.get("required", ()))

    @st.composite
    def drawn(draw: st.DrawFn) -> Object:
        chosen = draw(st.sets(st.sampled_from(sorted(properties)), max_size=_MOST_FIELDS)) | required
        return {name: draw(specs(properties[name])) for name in sorted(chosen)}

    return drawn()


def each_field(schema: Object) -> Iterator[tuple[str, Any]]:
    """The path of each leaf, with a value that has that leaf and what is required around it."""
    if schema.get("properties"):
        for name, part in schema["properties"].items():
            for path, value in each_field(part):
                yield f".{name}{path}", {**_required(schema), name: value}
    elif isinstance(schema.get("items"), dict):
        for path, value in each_field(schema["items"]):
            yield f"[]{path}", [value]
    elif isinstance(schema.get("additionalProperties"), dict):
        for path, value in each_field(schema["additionalProperties"]):
            yield f".*{path}", {"name": value}
    else:
        yield "", _simple(schema)


def each_mistake(schema: Object) -> Iterator[tuple[str, Any]]:
    """The path of each field, with a value in which that field alone has another type or is missing."""
    if schema.get("x-kubernetes-int-or-string"):
        yield "", {"wrong": "type"}
    elif "type" in schema:
        yield "", 7 if schema["type"] == "string" else "wrong"
    for name in schema.get("required", ()):
        yield f" without {name}", {other: part for other, part in _required(schema).items() if other != name}
    for name, part in schema.get("properties", {}).items():
        for path, value in each_mistake(part):
            yield f".{name}{path}", {**_required(schema), name: value}
    if isinstance(schema.get("items"), dict):
        for path, value in each_mistake(schema["items"]):
            yield f"[]{path}", [value]
    if isinstance(schema.get("additionalProperties"), dict):
        for path, value in each_mistake(schema["additionalProperties"]):
            yield f".*{path}", {"name": value}


def _required(schema: Object) -> Object:
    return {name: _whole(schema["properties"][name]) for name in schema.get("required", ())}


def _whole(schema: Object) -> Any:
    if schema.get("properties"):
        return _required(schema)
    return [] if schema.get("type") == "array" else _simple(schema)


def _simple(schema: Object) -> Any:
    if schema.get("pattern") == "^[0-9]+s$":
        return "7s"
    if schema.get("x-kubernetes-int-or-string"):
        return "1500m"
    values = {"integer": 7, "boolean": True, "object": {}, "array": []}
    return values.get(schema.get("type", ""), "YQ==")
