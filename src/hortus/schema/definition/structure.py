"""Structural schemas: every field has one type, declared once, outside of any alternative.

Source: apiextensions.k8s.io/v1, "Specifying a structural schema" (KEP "Vanilla OpenAPI subset"). Alternatives (`allOf`,
`anyOf`, `oneOf`, `not`) may only restrict values; the type of a value is declared in the spine of the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from hortus.schema import problems
from hortus.schema.patterns import PatternError, matcher
from hortus.schema.problems import FieldError, forbidden, invalid, required

Level = Literal["root", "item", "field"]
Schema = Mapping[str, Any]

_JUNCTORS = ("allOf", "anyOf", "oneOf")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_MISSING_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_FORBIDDEN_INSIDE = {
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def check_structural(schema: Schema, path: str = "openAPIV3Schema") -> list[FieldError]:
    """The reasons why `schema`, which is at `path`, is not structural; sorted by text."""
    found = [*_spine(schema, "root", path), *_complete(schema, schema, path, path)]
    return sorted(found, key=str)


def _spine(schema: Schema, level: Level, path: str) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    items = schema.get("items")
    if kind == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, Mapping):
        yield from _spine(items, "item", f"{path}.items")
    for name, child in (schema.get("properties") or {}).items():
        yield from _spine(child, "field", f"{path}.properties[{name}]")
    yield from _additional(schema, level, path)
    yield from _extensions(schema, path)
    yield from _restrictions(schema, path, spine=True)
    yield from _type(schema, kind, level, path)
    yield from _resource(schema, level, path)


def _additional(schema: Schema, level: Level, path: str) -> Iterator[FieldError]:
    additional = schema.get("additionalProperties")
    if additional is None:
        return
    if level == "root":
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(additional, Mapping):
        yield from _spine(additional, "field", f"{path}.additionalProperties")
    if schema.get("x-kubernetes-embedded-resource"):
        text = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(f"{path}.additionalProperties", text)


def _extensions(schema: Schema, path: str) -> Iterator[FieldError]:
    if not schema.get("x-kubernetes-int-or-string"):
        return
    for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
        if schema.get(name):
            yield invalid(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")


def _type(schema: Schema, kind: str, level: Level, path: str) -> Iterator[FieldError]:
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text)
    elif not kind and not (
        schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        yield required(f"{path}.type", _MISSING_TYPE[level])
    if level == "root" and kind and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")


def _resource(schema: Schema, level: Level, path: str) -> Iterator[FieldError]:
    """A root and an embedded resource keep apiVersion, kind and metadata to their usual types."""
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    properties = schema.get("properties") or {}
    if level == "root" or embedded:
        for name in ("kind", "apiVersion"):
            kind = properties.get(name, {"type": "string"}).get("type") or ""
            if kind != "string":
                yield invalid(f"{path}.properties[{name}].type", kind, "must be string")
        kind = properties.get("metadata", {"type": "object"}).get("type") or ""
        if kind != "object":
            yield invalid(f"{path}.properties[metadata].type", kind, "must be object")
    if level == "root" and "metadata" in properties and not _plain_metadata(properties["metadata"]):
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(f"{path}.properties[metadata]", text)
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not properties:
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{path}.properties", text)


def _plain_metadata(metadata: Schema) -> bool:
    rest = {name: value for name, value in metadata.items() if value and name not in ("type", "default", "properties")}
    return not rest and set(metadata.get("properties") or ()) <= {"name", "generateName"}


def _restrictions(schema: Schema, path: str, *, spine: bool = False, either: bool = False) -> Iterator[FieldError]:
    """The alternatives of one node. The two idioms for "integer or string" may name types."""
    for keyword in _JUNCTORS:
        branches = schema.get(keyword) or []
        if keyword == "anyOf" and (spine or either) and branches == _INT_OR_STRING:
            continue
        for number, branch in enumerate(branches):
            first = spine and keyword == "allOf" and number == 0
            yield from _inside(branch, f"{path}.{keyword}[{number}]", either=first)
    if isinstance(schema.get("not"), Mapping):
        yield from _inside(schema["not"], f"{path}.not")
    if pattern := schema.get("pattern"):
        yield from _pattern(pattern, path)


def _pattern(pattern: str, path: str) -> Iterator[FieldError]:
    try:
        matcher(pattern)
    except PatternError as error:
        yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")


def _inside(schema: Schema, path: str, *, either: bool = False) -> Iterator[FieldError]:
    """Checks one branch of an alternative: it may only restrict values."""
    yield from _restrictions(schema, path, either=either)
    if isinstance(schema.get("items"), Mapping):
        yield from _inside(schema["items"], f"{path}.items")
    for name, child in (schema.get("properties") or {}).items():
        yield from _inside(child, f"{path}.properties[{name}]")
    if schema.get("type"):
        yield forbidden(f"{path}.type", "must be empty to be structural")
    if schema.get("additionalProperties"):
        yield forbidden(f"{path}.additionalProperties", "must be undefined to be structural")
    for name, text in _FORBIDDEN_INSIDE.items():
        if schema.get(name) or (name == "default" and schema.get(name) is not None):
            yield forbidden(f"{path}.{name}", text)
    if "metadata" in (schema.get("properties") or {}):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _complete(branch: Schema, spine: Schema | None, path: str, where: str) -> Iterator[FieldError]:
    """Checks that every field named by an alternative at `where` is declared in the spine at `path`."""
    if spine is None:
        yield required(path, f"because it is defined in {where}")
        return
    if isinstance(branch.get("not"), Mapping):
        yield from _complete_branch(branch["not"], spine, path, f"{where}.not")
    for keyword in _JUNCTORS:
        for number, inner in enumerate(branch.get(keyword) or []):
            yield from _complete_branch(inner, spine, path, f"{where}.{keyword}[{number}]")


def _complete_branch(branch: Schema, spine: Schema | None, path: str, where: str) -> Iterator[FieldError]:
    if spine is None:
        yield required(path, f"because it is defined in {where}")
        return
    yield from _complete(branch, spine, path, where)
    if isinstance(branch.get("items"), Mapping):
        yield from _complete_branch(branch["items"], spine.get("items"), f"{path}.items", f"{where}.items")
    properties = spine.get("properties") or {}
    for name, inner in (branch.get("properties") or {}).items():
        child = f"properties[{name}]"
        if name not in properties:
            yield problems.required(f"{path}.{child}", f"because it is defined in {where}.{child}")
        else:
            yield from _complete_branch(inner, properties[name], f"{path}.{child}", f"{where}.{child}")
