"""Markers for `Annotated`, which add to the Python type of a field, and the facts of a kind.

    zones: Annotated[tuple[str, ...], msgspec.Meta(min_length=1), ListSet()]

Limits that msgspec knows (`msgspec.Meta`: ge, gt, le, lt, multiple_of, pattern, min_length, max_length) are written
with msgspec; these markers hold the keywords that only Kubernetes has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import msgspec


class Marker(ABC):
    """Base of all markers: `keywords` is what a marker adds to the schema of its field."""

    @abstractmethod
    def keywords(self) -> dict[str, Any]:
        """Keywords and their values, as the schema is to hold them."""


class ListMap(Marker):
    """A list of objects, merged and checked by the values of the named keys."""

    def __init__(self, *keys: str) -> None:
        self.keys = keys

    def keywords(self) -> dict[str, Any]:
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(self.keys)}


class ListSet(Marker):
    """A list whose members are unique and merged one by one."""

    def keywords(self) -> dict[str, Any]:
        return {"x-kubernetes-list-type": "set"}


class Atomic(Marker):
    """A list or an object that one writer owns as a whole."""

    def keywords(self) -> dict[str, Any]:
        return {"x-kubernetes-list-type": "atomic"}


class PreserveUnknown(Marker):
    """Fields that the schema does not name are kept."""

    def keywords(self) -> dict[str, Any]:
        return {"x-kubernetes-preserve-unknown-fields": True}


class EmbeddedResource(Marker):
    """The object is a whole Kubernetes resource, with apiVersion, kind and metadata."""

    def keywords(self) -> dict[str, Any]:
        return {"x-kubernetes-embedded-resource": True}


class Nullable(Marker):
    """An explicit null is kept instead of counting as absent."""

    def keywords(self) -> dict[str, Any]:
        return {"nullable": True}


class Format(Marker):
    """The `format` of the field, such as `int64`, `date-time` or `cidr`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def keywords(self) -> dict[str, Any]:
        return {"format": self.name}


class Values(Marker):
    """The allowed values, for code that prefers constants to `Literal`."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def keywords(self) -> dict[str, Any]:
        return {"enum": list(self.values)}


class Default(Marker):
    """The default that the API server fills in, where the Python default cannot express it (such as `{}`)."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def keywords(self) -> dict[str, Any]:
        return {"default": self.value}


class Shape(Marker):
    """The schema of a struct, for a field that keeps the object as it was written: fields unknown to the struct, empty
    lists and the form of numbers included. `msgspec.convert(value, struct)` reads it.
    """

    def __init__(self, struct: type[msgspec.Struct]) -> None:
        self.struct = struct

    def keywords(self) -> dict[str, Any]:
        """No keywords besides the schema of the struct, which stands in place of the field's own."""
        return {}


class CoreType(Marker):
    """The schema of a built-in type of Kubernetes, for a field that keeps its object as it was written.

    liveness_probe: Annotated[dict[str, Any] | None, CoreType("core.Probe")] = None
    """

    def __init__(self, name: str) -> None:
        """`name` is one of `schema/builtin/kinds.txt`: alias.Name, or a word such as `quantity`."""
        self.name = name

    def keywords(self) -> dict[str, Any]:
        """The whole schema of the type, which stands in place of the field's own."""
        from hortus.schema.builtin import embedded_schema

        return embedded_schema(self.name)


class Extra(Marker):
    """Further keywords of the schema, such as `{"oneOf": [...]}`."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema

    def keywords(self) -> dict[str, Any]:
        return dict(self.schema)


class ValidationRule(msgspec.Struct, frozen=True):
    """A CEL rule (`x-kubernetes-validations`). On a class through `__rules__`, on a field as a marker."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None

    def keywords(self) -> dict[str, Any]:
        named = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
            "fieldPath": self.field_path,
            "optionalOldSelf": self.optional_old_self,
        }
        return {name: value for name, value in named.items() if value not in ("", None)}


class Column(msgspec.Struct, frozen=True):
    """A printer column of `kubectl get`; those with a priority above 0 appear with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0

    def definition(self) -> dict[str, Any]:
        named = {
            "name": self.name,
            "type": self.type,
            "jsonPath": self.path,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }
        return {name: value for name, value in named.items() if value}


AGE = Column("Age", ".metadata.creationTimestamp", "date")


class Scale(msgspec.Struct, frozen=True):
    """The paths of the numbers of the scale subresource, such as `.spec.replicas`."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""

    def definition(self) -> dict[str, str]:
        named = {
            "specReplicasPath": self.spec_replicas,
            "statusReplicasPath": self.status_replicas,
            "labelSelectorPath": self.label_selector,
        }
        return {name: value for name, value in named.items() if value}
