"""The Python types of a CustomResourceDefinition's fields, checked before anything else.

kube-apiserver refuses wrong types while it decodes; here the decoded object arrives as it was sent, and all code behind
this check may rely on the types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hortus.schema.checks import type_name
from hortus.schema.nodes import MAX_DEPTH
from hortus.schema.problems import FieldError, invalid, type_invalid
from hortus.schema.quoting import quote

_TEXT, _FLAG, _WHOLE, _NUMBER, _LIST, _OBJECT = (
    ("string",),
    ("boolean",),
    ("integer",),
    ("integer", "number"),
    ("array",),
    ("object",),
)
_SCHEMA_FIELDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("id", "$schema", "$ref", "description", "type", "format", "title", "pattern"), _TEXT),
    **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), _TEXT),
    **dict.fromkeys(("nullable", "uniqueItems", "exclusiveMaximum", "exclusiveMinimum"), _FLAG),
    **dict.fromkeys(("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"), _FLAG),
    "x-kubernetes-int-or-string": _FLAG,
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _WHOLE),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("enum", "required", "allOf", "anyOf", "oneOf", "x-kubernetes-list-map-keys"), _LIST),
    "x-kubernetes-validations": _LIST,
    **dict.fromkeys(("properties", "patternProperties", "definitions", "dependencies", "externalDocs", "not"), _OBJECT),
    "items": ("object", "array"),
    "additionalProperties": ("object", "boolean"),
    "additionalItems": ("object", "boolean"),
}
_RULE_FIELDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), _TEXT),
    "optionalOldSelf": _FLAG,
}
_NAMES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("plural", "singular", "kind", "listKind"), _TEXT),
    "shortNames": _LIST,
    "categories": _LIST,
}
_SPEC: Mapping[str, tuple[str, ...]] = {
    "group": _TEXT,
    "scope": _TEXT,
    "names": _OBJECT,
    "versions": _LIST,
    "conversion": _OBJECT,
    "preserveUnknownFields": _FLAG,
}
_VERSION: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("name", "deprecationWarning"), _TEXT),
    **dict.fromkeys(("served", "storage", "deprecated"), _FLAG),
    **dict.fromkeys(("schema", "subresources"), _OBJECT),
    **dict.fromkeys(("additionalPrinterColumns", "selectableFields"), _LIST),
}
_COLUMN: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("name", "type", "format", "description", "jsonPath"), _TEXT),
    "priority": _WHOLE,
}
_SCALE = dict.fromkeys(("specReplicasPath", "statusReplicasPath", "labelSelectorPath"), _TEXT)
_CONVERSION: Mapping[str, tuple[str, ...]] = {"strategy": _TEXT, "webhook": _OBJECT}
_WEBHOOK: Mapping[str, tuple[str, ...]] = {"clientConfig": _OBJECT, "conversionReviewVersions": _LIST}
_CLIENT: Mapping[str, tuple[str, ...]] = {"url": _TEXT, "service": _OBJECT, "caBundle": _TEXT}
_SERVICE: Mapping[str, tuple[str, ...]] = {"name": _TEXT, "namespace": _TEXT, "path": _TEXT, "port": _WHOLE}


def check_types(crd: Mapping[str, Any]) -> list[FieldError]:
    """The fields of a CustomResourceDefinition whose value has another type; nulls count as absent."""
    return list(_definition(crd))


def _definition(crd: Mapping[str, Any]) -> Iterator[FieldError]:
    yield from _fields(crd, {"spec": _OBJECT, "metadata": _OBJECT}, "")
    yield from _fields(_object(crd, "metadata"), {"name": _TEXT, "annotations": _OBJECT}, "metadata")
    spec = _object(crd, "spec")
    yield from _fields(spec, _SPEC, "spec")
    names = _object(spec, "names")
    yield from _fields(names, _NAMES, "spec.names")
    for part in ("shortNames", "categories"):
        yield from _texts(names.get(part), f"spec.names.{part}")
    for path, version in _objects(spec.get("versions"), "spec.versions"):
        yield from _version(version, path) if isinstance(version, Mapping) else (_wrong(path, version, _OBJECT),)
    yield from _conversion(_object(spec, "conversion"))


def _version(version: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    yield from _fields(version, _VERSION, path)
    yield from _fields(_object(version, "schema"), {"openAPIV3Schema": _OBJECT}, f"{path}.schema")
    subresources = _object(version, "subresources")
    yield from _fields(subresources, {"status": _OBJECT, "scale": _OBJECT}, f"{path}.subresources")
    yield from _fields(_object(subresources, "scale"), _SCALE, f"{path}.subresources.scale")
    for part, known in (("additionalPrinterColumns", _COLUMN), ("selectableFields", {"jsonPath": _TEXT})):
        for place, item in _objects(version.get(part), f"{path}.{part}"):
            yield from _fields(item, known, place) if isinstance(item, Mapping) else (_wrong(place, item, _OBJECT),)
    schema = _object(version, "schema").get("openAPIV3Schema")
    if isinstance(schema, Mapping):
        yield from _schema(schema, f"{path}.schema.openAPIV3Schema", 0)


def _conversion(conversion: Mapping[str, Any]) -> Iterator[FieldError]:
    path = "spec.conversion"
    yield from _fields(conversion, _CONVERSION, path)
    webhook = _object(conversion, "webhook")
    yield from _fields(webhook, _WEBHOOK, f"{path}.webhook")
    yield from _texts(webhook.get("conversionReviewVersions"), f"{path}.webhook.conversionReviewVersions")
    client = _object(webhook, "clientConfig")
    yield from _fields(client, _CLIENT, f"{path}.webhook.clientConfig")
    yield from _fields(_object(client, "service"), _SERVICE, f"{path}.webhook.clientConfig.service")


def _schema(schema: Any, path: str, depth: int) -> Iterator[FieldError]:
    if not isinstance(schema, Mapping):
        yield _wrong(path, schema, _OBJECT)
        return
    if depth > MAX_DEPTH:
        yield invalid(path, "", f"must not be nested more than {MAX_DEPTH} levels deep")
        return
    yield from _fields(schema, _SCHEMA_FIELDS, path)
    for keyword in ("required", "x-kubernetes-list-map-keys"):
        yield from _texts(schema.get(keyword), f"{path}.{keyword}")
    for place, rule in _objects(schema.get("x-kubernetes-validations"), f"{path}.x-kubernetes-validations"):
        yield from _fields(rule, _RULE_FIELDS, place) if isinstance(rule, Mapping) else (_wrong(place, rule, _OBJECT),)
    for place, child in _children(schema, path):
        yield from _schema(child, place, depth + 1)


def _children(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for name, child in _object(schema, "properties").items():
        yield f"{path}.properties[{name}]", child
    for keyword in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(keyword), Mapping):
            yield f"{path}.{keyword}", schema[keyword]
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from _objects(schema.get(keyword), f"{path}.{keyword}")


def _object(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = parent.get(name)
    return found if isinstance(found, Mapping) else {}


def _objects(items: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(items, list):
        for number, item in enumerate(items):
            yield f"{path}[{number}]", item


def _fields(obj: Mapping[str, Any], known: Mapping[str, tuple[str, ...]], path: str) -> Iterator[FieldError]:
    for name, value in obj.items():
        names = known.get(name)
        if names is not None and value is not None and type_name(value) not in names:
            yield _wrong(f"{path}.{name}" if path else name, value, names)


def _texts(items: Any, path: str) -> Iterator[FieldError]:
    for place, item in _objects(items, path):
        if not isinstance(item, str):
            yield _wrong(place, item, _TEXT)


def _wrong(path: str, value: Any, names: tuple[str, ...]) -> FieldError:
    actual = "null" if value is None else type_name(value)
    return type_invalid(path, actual, f"{path} in body must be of type {','.join(names)}: {quote(actual)}")
