"""Structural OpenAPI v3 schemas of the built-in kinds, derived from the description and shared by identity.

A struct that many kinds hold (PodSpec, ObjectMeta, LabelSelector) becomes one dict that all their schemas reference, so
that compilers can cache by identity and compile it once. Vendor extensions hold the rules of server-side apply
(`x-kubernetes-list-type`, `-list-map-keys`, `-map-type`) and of strategic merge (`x-kubernetes-patch-strategy`,
`-patch-merge-key`). There are no `$ref`s: the one recursive type, JSONSchemaProps, is left open below its first level,
because the code that serves a CustomResourceDefinition validates its schema.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from hortus.kube.objects import GroupVersionKind, Object
from hortus.schema.builtin import Description, FieldDescription, builtin

_OPEN: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_ANY: Object = {"x-kubernetes-preserve-unknown-fields": True}
_WORDS: dict[str, Object] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "duration": {"type": "string"},
    # Any format but byte makes a string an open scalar to server-side apply, which accepts `cpu: 1` as Go does.
    "quantity": {"type": "string", "format": "quantity"},
    "intstr": {"format": "int-or-string", "x-kubernetes-int-or-string": True},
    "raw": _OPEN,
    "fields": _OPEN,
    "strings": {"type": "array", "items": {"type": "string"}},
    "json": _ANY,
    "schemaOrBool": _ANY,
    "schemaOrArray": _ANY,
    "schemaOrStrings": _ANY,
}

# Required by OpenAPI, yet kube-apiserver accepts objects without them.
_NOT_REQUIRED = frozenset({("discovery.EndpointSlice", "endpoints")})


class Schemas:
    """Builds and caches the schema of each type of one description.

    With `zero_times` no time is required: Go writes one that is not set as null.
    """

    def __init__(self, description: Description, *, zero_times: bool = False) -> None:
        self._description = description
        self._unset = frozenset({"time", "microtime"} if zero_times else ())
        self._built: dict[str, Object] = {}
        self._open: set[str] = set()

    def of(self, name: str) -> Object:
        """The schema of the type alias.Name, the same dict each time."""
        found = self._built.get(name)
        if found is None:
            self._open.add(name)
            found = self._built[name] = self._build(name)
            self._open.discard(name)
        return found

    def published(self) -> Mapping[str, Object]:
        """The schemas built so far for structs, by OpenAPI name; each is the dict that kinds' schemas reference."""
        return {
            self._description.openapi_name(name): schema
            for name, schema in self._built.items()
            if schema.get("properties") and not name.endswith((".ObjectMeta", ".ListMeta"))
        }

    def _build(self, name: str) -> Object:
        declared = self._description.type(name)
        if declared.values:
            return {"type": "string", "enum": list(declared.values)}
        fields = self._description.json_fields(name)
        schema: Object = {
            "type": "object",
            "properties": {key: self._property(field) for key, field in fields.items()},
        }
        required = [
            key
            for key, field in fields.items()
            if field.required and field.kind not in self._unset and (name, key) not in _NOT_REQUIRED
        ]
        if required:
            schema["required"] = sorted(required)
        if declared.atomic:
            schema["x-kubernetes-map-type"] = "atomic"
        return schema

    def _property(self, field: FieldDescription) -> Object:
        schema = self._element(field)
        extra: Object = {}
        if field.shape == "list":
            schema = {"type": "array", "items": schema}
            list_type, keys = _merged(field)
            extra["x-kubernetes-list-type"] = list_type
            if keys:
                extra["x-kubernetes-list-map-keys"] = list(keys)
        elif field.shape == "map":
            schema = {"type": "object", "additionalProperties": schema}
        if field.shape != "list" and field.list_type:
            extra["x-kubernetes-map-type"] = field.list_type
        if field.patch[0]:
            extra["x-kubernetes-patch-strategy"] = field.patch[0]
        if field.patch[1]:
            extra["x-kubernetes-patch-merge-key"] = field.patch[1]
        if field.default is not None:
            extra["default"] = field.default
        return {**schema, **extra} if extra else schema

    def _element(self, field: FieldDescription) -> Object:
        if not field.ref:
            return _WORDS[field.kind]
        if field.ref in self._open:
            return _OPEN
        return self.of(field.ref)


def _merged(field: FieldDescription) -> tuple[str, tuple[str, ...]]:
    """The type and the keys of a list for server-side apply.

    A list without a type is merged as by strategic merge (k8s.io/kube-openapi, pkg/schemaconv), else atomic.
    """
    strategy, key = field.patch
    if field.list_type or "merge" not in strategy.split(","):
        return field.list_type or "atomic", field.keys
    return ("map", (key,)) if key else ("set", ())


def kind_schema(name: str, gvk: GroupVersionKind, schemas: Schemas | None = None) -> Object:
    """The schema of a whole object of the kind alias.Name; without `schemas` of a built-in one."""
    return {**(schemas or shared()).of(name), "x-kubernetes-group-version-kind": [gvk._asdict()]}


@functools.cache
def shared() -> Schemas:
    """The schemas of the package's own description."""
    return Schemas(builtin())
