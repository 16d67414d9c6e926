"""The type view that structured merge needs of an OpenAPI v3 structural schema.

A `MergeType` defines how a value is merged and owned: as a leaf, field by field, or item by item. Types are
built on first use, cached by the identity of the schema dict and shared between kinds: the PodSpec inside ten kinds is
built once, recursion ends, and a server with thousands of schemas starts at once.

Rules: KEP-555 and the "Merge strategy" section of the server-side apply documentation; without a schema the type of
each value is deduced (maps field by field, lists as a whole).
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from hortus.schema.merge.elements import json_text

Object = dict[str, Any]
Schema = Mapping[str, Any]

_MERGING = ("merge", "merge,retainKeys", "retainKeys,merge")
_WHOLE_FORMATS = ("", "byte")


class MergeType:
    """The way a value is merged. A value without `type` in its schema may be scalar, list and map.

    `element` is the type of keys that are not declared; None means such keys are not allowed. `items` is None where
    lists are not allowed.
    """

    __slots__ = (
        "__weakref__",
        "_items",
        "_preserve",
        "atomic_map",
        "default",
        "element",
        "fields",
        "is_list",
        "is_map",
        "keys",
        "list_type",
        "merge_key",
        "scalar",
        "schema",
        "source",
        "strategies",
    )

    fields: FieldTypes | None
    element: MergeType | None

    def __init__(self, schema: Schema, *, preserve: bool) -> None:
        self.schema = self.source = schema
        kind = schema.get("type", "")
        self._preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        self.scalar = _scalar(kind, schema)
        """`numeric`, `string`, `boolean`, `untyped` (any scalar) or empty for none."""
        self.is_map = kind in ("object", "")
        self.is_list = kind in ("array", "")
        self.atomic_map = schema.get("x-kubernetes-map-type") == "atomic"
        self.list_type, self.keys = _list_type(schema) if self.is_list else ("atomic", ())
        self._items: MergeType | None = None
        self.default = schema.get("default")
        self.merge_key: str = schema.get("x-kubernetes-patch-merge-key", "")
        self.strategies: tuple[str, ...] = tuple(filter(None, schema.get("x-kubernetes-patch-strategy", "").split(",")))
        declared = _properties(schema) if self.is_map else {}
        self.fields = FieldTypes(declared, self._preserve) if declared else None
        self.element = _element(schema, preserve=self._preserve, declared=bool(declared)) if self.is_map else None

    @property
    def items(self) -> MergeType:
        """The type of a list's items."""
        if self._items is None:
            items = self.schema.get("items")
            self._items = UNTYPED if items is None else type_of(items, preserve=self._preserve)
        return self._items

    def field(self, name: str) -> MergeType | None:
        """The type of a key of this map: its declared type, that of undeclared keys, or None when the key is not
        allowed."""
        declared = self.fields[name] if self.fields is not None else None
        return self.element if declared is None else declared

    def declares(self, name: str) -> bool:
        return self.fields is not None and self.fields[name] is not None


class FieldTypes(dict[str, MergeType | None]):
    """Declared fields by name, each type built on first use; None for a name that is not declared."""

    __slots__ = ("_declared", "_preserve")

    def __init__(self, declared: Mapping[str, Schema], preserve: bool) -> None:
        super().__init__()
        self._declared = declared
        self._preserve = preserve

    def __missing__(self, name: str) -> MergeType | None:
        schema = self._declared.get(name)
        if schema is None:
            return None
        found = self[name] = type_of(schema, preserve=self._preserve)
        return found


_types: weakref.WeakValueDictionary[tuple[int, bool], MergeType] = weakref.WeakValueDictionary()


def type_of(schema: Schema, *, preserve: bool = False) -> MergeType:
    """The type of `schema`; the same dict has the same type as long as the type is referenced."""
    key = (id(schema), preserve)
    found = _types.get(key)
    if found is None:
        found = _types[key] = MergeType(_resolved(schema), preserve=preserve)
        # The schema is referenced because its id may be reused once it is freed.
        found.source = schema
    return found


def _resolved(schema: Schema) -> Schema:
    """A schema that is only one `allOf` with annotations around it, merged into one."""
    parts = schema.get("allOf")
    if parts and len(parts) == 1 and "type" not in schema and "properties" not in schema:
        return {**parts[0], **{key: value for key, value in schema.items() if key != "allOf"}}
    return schema


def _scalar(kind: str, schema: Schema) -> str:
    if kind in ("integer", "number"):
        return "numeric"
    if kind == "boolean":
        return "boolean"
    if kind == "string":
        return "string" if schema.get("format", "") in _WHOLE_FORMATS else "untyped"
    return "" if kind in ("object", "array") else "untyped"


def _list_type(schema: Schema) -> tuple[str, tuple[str, ...]]:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "map":
        return "map", tuple(schema.get("x-kubernetes-list-map-keys") or ())
    if kind is not None:
        return kind, ()
    if schema.get("x-kubernetes-patch-strategy") in _MERGING:
        key = schema.get("x-kubernetes-patch-merge-key")
        return ("map", (key,)) if key else ("set", ())
    return "atomic", ()


def _properties(schema: Schema) -> Mapping[str, Schema]:
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    return {**properties, **_HEAD} if schema.get("x-kubernetes-embedded-resource") is True else properties


def _element(schema: Schema, *, preserve: bool, declared: bool) -> MergeType | None:
    additional = schema.get("additionalProperties")
    if additional is None:
        return DEDUCED if preserve or not declared else None
    if isinstance(additional, Mapping):
        return type_of(additional, preserve=preserve)
    return DEDUCED if additional else None


def _any(*, atomic: bool) -> MergeType:
    schema = {"x-kubernetes-map-type": "atomic"} if atomic else {}
    found = MergeType.__new__(MergeType)
    found.schema = found.source = schema
    found.scalar, found.is_map, found.is_list = "untyped", True, True
    found.atomic_map, found.list_type, found.keys = atomic, "atomic", ()
    found.fields, found.element, found.default = None, found, None
    found.merge_key, found.strategies = "", ()
    found._preserve, found._items = True, None
    return found


UNTYPED = _any(atomic=True)
"""Anything, merged and owned as a whole."""
DEDUCED = _any(atomic=False)
"""Anything; maps field by field, lists as a whole."""

_STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_TEXT: Schema = {"type": "string"}
_WHEN: Schema = {"type": "string", "format": "date-time"}
_OWNER: Schema = {
    "type": "object",
    "x-kubernetes-map-type": "atomic",
    "properties": {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "name": _TEXT,
        "uid": _TEXT,
        "controller": {"type": "boolean"},
        "blockOwnerDeletion": {"type": "boolean"},
    },
}
_METADATA: Schema = {
    "type": "object",
    "properties": {
        "annotations": _STRINGS,
        "creationTimestamp": _WHEN,
        "deletionGracePeriodSeconds": {"type": "integer"},
        "deletionTimestamp": _WHEN,
        "finalizers": {
            "type": "array",
            "items": _TEXT,
            "x-kubernetes-list-type": "set",
            "x-kubernetes-patch-strategy": "merge",
        },
        "generateName": _TEXT,
        "generation": {"type": "integer"},
        "labels": _STRINGS,
        "managedFields": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"},
        "name": _TEXT,
        "namespace": _TEXT,
        "ownerReferences": {
            "type": "array",
            "items": _OWNER,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "uid",
        },
        "resourceVersion": _TEXT,
        "selfLink": _TEXT,
        "uid": _TEXT,
    },
}
_HEAD: Mapping[str, Schema] = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}


class MergeSchema:
    """The compiled schema of one version of one kind. Compiling is cheap; parts are built when first used."""

    __slots__ = ("_openapi", "_root", "empty")

    def __init__(self, openapi: Schema | None, empty: Object) -> None:
        self._openapi = openapi
        self._root: MergeType | None = None
        self.empty = empty
        """The empty object of the kind: the fields that it holds are not owned by the creator."""

    @classmethod
    def compile(cls, openapi: Schema | None, *, empty: Object | None = None) -> MergeSchema:
        """Compiles an OpenAPI v3 structural schema; None for a kind without one.

        `apiVersion`, `kind` and `metadata` are added where the schema leaves `metadata` open, as it does in a CRD.
        `empty` is the object that kube-apiserver's Go type marshals to when nothing is set (`{"metadata":
        {"creationTimestamp": null}, "spec": {}, "status": {}}`); custom resources have none.
        """
        return cls(openapi, empty or {})

    @property
    def root(self) -> MergeType:
        """The type of the whole object."""
        if self._root is None:
            self._root = type_of(_BARE if self._openapi is None else _with_head(self._openapi))
        return self._root


_BARE: Schema = {"type": "object"}


def _with_head(schema: Schema) -> Schema:
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    metadata = properties.get("metadata") or {}
    if "labels" in (metadata.get("properties") or {}):
        return schema
    return {**schema, "properties": {**properties, **_HEAD}}


def key_default(items: MergeType, name: str) -> str | int | float | bool | None:
    """The default of an associative key, by which an item without the key is found."""
    field = items.fields[name] if items.fields is not None else None
    default = field.default if field is not None else None
    return default if default is None or isinstance(default, str | int | float | bool) else json_text(default)
