"""Schemas in the form of OpenAPI documents, for `kubectl explain` and the validation of clients.

Version 3 shows a schema unchanged. Version 2 has neither alternatives nor nullable fields, and kubectl fails at fields
below values of unknown content, so these are omitted there (docs "Custom Resources", Publish validation schema in
OpenAPI). In both, metadata points to one shared schema and the root names its group, version and kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Schema = Mapping[str, Any]

V2_PREFIX = "#/definitions/"
V3_PREFIX = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_JUNCTORS = ("allOf", "anyOf", "oneOf", "not")


class Published(NamedTuple):
    """The names under which a kind is published."""

    group: str
    version: str
    kind: str
    list_kind: str
    plural: str

    @property
    def name(self) -> str:
        """The key of the kind's schema: the labels of the group in reverse order, version, kind."""
        return schema_name(self.group, self.version, self.kind)


def schema_name(group: str, version: str, kind: str) -> str:
    """`org.example.v1.Foo`; groups without a dot are Kubernetes' own, `io.k8s.api.apps.v1.Deployment`."""
    if "." in group:
        return ".".join((*reversed(group.split(".")), version, kind))
    return f"io.k8s.api.{group or 'core'}.{version}.{kind}"


def published(
    schema: Schema, names: Published, *, v2: bool = False, shared: Mapping[int, str] | None = None
) -> dict[str, Any]:
    """The schema of a kind for a document of OpenAPI 3, or 2.

    `shared` has, by the identity of their dicts, names of schemas which the document holds as components of their own
    (version 3 only): these are referenced.
    """
    if v2 and schema.get("x-kubernetes-preserve-unknown-fields"):
        # Any property here would make kubectl refuse all others.
        return {"type": "object", **_gvk(names, names.kind)}
    found = _node(schema, v2=v2, shared={} if v2 else shared or {})
    properties = found.get("properties") or {}
    found["properties"] = {**properties, **_type_properties(properties), "metadata": _metadata("ObjectMeta", v2=v2)}
    return found | _gvk(names, names.kind)


def published_list(names: Published, *, v2: bool = False) -> dict[str, Any]:
    """The schema of lists of a kind."""
    items = {"$ref": _prefix(v2=v2) + names.name}
    return {
        "type": "object",
        "description": f"A list of {names.kind} objects.",
        "required": ["items"],
        "properties": {
            **_type_properties({}),
            "metadata": _metadata("ListMeta", v2=v2),
            "items": {"type": "array", "description": f"The {names.plural}.", "items": items},
        },
        **_gvk(names, names.list_kind),
    }


def _gvk(names: Published, kind: str) -> dict[str, Any]:
    entry = {"group": names.group, "version": names.version, "kind": kind}
    return {"x-kubernetes-group-version-kind": [entry]}


def _prefix(*, v2: bool) -> str:
    return V2_PREFIX if v2 else V3_PREFIX


def _metadata(name: str, *, v2: bool) -> dict[str, Any]:
    """A reference with a description, which version 3 can only add around it."""
    reference = {"$ref": f"{_prefix(v2=v2)}{_META}{name}"}
    text = "Standard metadata of the object." if name == "ObjectMeta" else "Standard metadata of the list."
    return {**reference, "description": text} if v2 else {"allOf": [reference], "default": {}, "description": text}


def _type_properties(given: Schema) -> dict[str, Any]:
    return {name: dict(given.get(name) or _TYPE_META[name]) for name in _TYPE_META}


def component(schema: Schema, shared: Mapping[int, str]) -> dict[str, Any]:
    """A schema that others refer to, for a document of OpenAPI 3."""
    return _node(schema, v2=False, shared=shared)


def _child(schema: Schema, *, v2: bool, shared: Mapping[int, str]) -> dict[str, Any]:
    name = shared.get(id(schema))
    return _node(schema, v2=v2, shared=shared) if name is None else {"allOf": [{"$ref": V3_PREFIX + name}]}


def _node(schema: Schema, *, v2: bool, shared: Mapping[int, str]) -> dict[str, Any]:
    found = {key: value for key, value in schema.items() if key not in ("properties", "items", "additionalProperties")}
    if v2:
        hidden = _simplify(found)
        if hidden:
            return found
    for key in ("items", "additionalProperties"):
        child = schema.get(key)
        if child is not None:
            found[key] = _child(child, v2=v2, shared=shared) if isinstance(child, Mapping) else child
    if schema.get("properties"):
        found["properties"] = {
            name: _child(child, v2=v2, shared=shared) for name, child in schema["properties"].items()
        }
    if v2:
        _finish(found, schema)
    if schema.get("x-kubernetes-embedded-resource"):
        _embed(found, v2=v2)
    return found


def _simplify(found: dict[str, Any]) -> bool:
    """Drops everything that version 2 does not have; True when the content has to be omitted too."""
    for keyword in _JUNCTORS:
        found.pop(keyword, None)
    if found.pop("nullable", False):
        found.pop("type", None)
        return True
    if found.get("x-kubernetes-preserve-unknown-fields"):
        found.pop("type", None)
        return True
    return False


def _finish(found: dict[str, Any], schema: Schema) -> None:
    """A list of unknown items has no type; fields that may be null are not required."""
    if found.get("type") == "array" and "items" not in found:
        del found["type"]
    nullable = {name for name, child in (schema.get("properties") or {}).items() if child.get("nullable")}
    required = [name for name in found.get("required") or () if name not in nullable]
    if len(required) != len(found.get("required") or ()):
        found["required"] = required
    if not found.get("required"):
        found.pop("required", None)


def _embed(found: dict[str, Any], *, v2: bool) -> None:
    """Gives an embedded resource a type and metadata."""
    properties = found.get("properties") or {}
    found["properties"] = {**properties, **_type_properties({}), "metadata": _metadata("ObjectMeta", v2=v2)}
    found["required"] = list(dict.fromkeys([*(found.get("required") or ()), "kind", "apiVersion"]))


_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_TIME = {"type": "string", "format": "date-time"}
_COUNT = {"type": "integer", "format": "int64"}


def _described(schema: Schema, text: str) -> dict[str, Any]:
    return {**schema, "description": text}


_TYPE_META: Mapping[str, dict[str, Any]] = {
    "apiVersion": _described(_TEXT, "The version of the schema that the object is written in, with its group."),
    "kind": _described(_TEXT, "The type of the object, in CamelCase."),
}
_OWNER = {
    "type": "object",
    "description": "An object that owns this one.",
    "required": ["apiVersion", "kind", "name", "uid"],
    "x-kubernetes-map-type": "atomic",
    "properties": {
        **_TYPE_META,
        "name": _described(_TEXT, "Name of the owner."),
        "uid": _described(_TEXT, "UID of the owner."),
        "controller": _described({"type": "boolean"}, "True for the one owner that controls this object."),
        "blockOwnerDeletion": _described(
            {"type": "boolean"}, "True if a foreground deletion of the owner waits for this object."
        ),
    },
}
_MANAGED_FIELDS = {
    "type": "object",
    "description": "The fields that one manager last set.",
    "properties": {
        "apiVersion": _described(_TEXT, "The version of the object in which the fields are named."),
        "fieldsType": _described(_TEXT, "The form of fieldsV1, always FieldsV1."),
        "fieldsV1": _described({"type": "object"}, "The fields, as a tree."),
        "manager": _described(_TEXT, "The name of the manager that set the fields."),
        "operation": _described(_TEXT, "Apply or Update."),
        "subresource": _described(
            _TEXT, "The subresource through which the fields were set; empty for the object itself."
        ),
        "time": _described(_TIME, "The time at which the manager last changed its fields."),
    },
}
_OBJECT_META = {
    "type": "object",
    "description": "The metadata of every object: names, labels, owners, and the fields that the server sets.",
    "properties": {
        "name": _described(_TEXT, "The name, unique among the objects of its kind in its namespace. It cannot change."),
        "generateName": _described(_TEXT, "The prefix of a generated name. Used when `name` is empty."),
        "namespace": _described(_TEXT, "The namespace in which the name is unique. It cannot change."),
        "uid": _described(_TEXT, "Identifies this object among all objects that ever had its name. Set by the server."),
        "labels": _described(_TEXTS, "Short texts that identify objects; selectors match them."),
        "annotations": _described(_TEXTS, "Texts of any kind and length; selectors do not match them."),
        "resourceVersion": _described(
            _TEXT, "The version of the object, which changes with every write. Set by the server."
        ),
        "generation": _described(_COUNT, "Counts the changes of the desired state. Set by the server."),
        "creationTimestamp": _described(_TIME, "The time at which the object was created. Set by the server."),
        "deletionTimestamp": _described(
            _TIME, "The time after which the object is deleted. Set by the server when its deletion is requested."
        ),
        "deletionGracePeriodSeconds": _described(_COUNT, "Seconds that the object has to end before it is deleted."),
        "finalizers": _described(
            {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
            "The names of tasks that must be done before the object is deleted.",
        ),
        "ownerReferences": _described(
            {
                "type": "array",
                "items": _OWNER,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "x-kubernetes-patch-merge-key": "uid",
                "x-kubernetes-patch-strategy": "merge",
            },
            "The objects that own this one. It is deleted when all of them are deleted.",
        ),
        "managedFields": _described(
            {"type": "array", "items": _MANAGED_FIELDS, "x-kubernetes-list-type": "atomic"},
            "The managers of the fields of this object. Set by the server.",
        ),
        "selfLink": _described(_TEXT, "No longer used."),
    },
}
_LIST_META = {
    "type": "object",
    "description": "The metadata of every list.",
    "properties": {
        "resourceVersion": _described(_TEXT, "The version of the server's state that the list shows."),
        "continue": _described(_TEXT, "The token of the next page; empty on the last one."),
        "remainingItemCount": _described(_COUNT, "The number of objects after this page, where it is known."),
        "selfLink": _described(_TEXT, "No longer used."),
    },
}

META_SCHEMAS: Mapping[str, dict[str, Any]] = {f"{_META}ObjectMeta": _OBJECT_META, f"{_META}ListMeta": _LIST_META}
"""Schemas that published kinds refer to; every document needs them."""
