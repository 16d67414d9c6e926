"""Schemas of fields of a CRD that have a built-in type, such as a Probe, in the form that controller-gen gives them.

They differ from the schemas of the built-in kinds themselves (`apiserver/builtin/schemas.py`), which leave more to Go
code: a quantity has a pattern, a list has a list type only where its Go field has one, an enumeration is plain text and
its default is left to the API server that gets the built-in object, and metadata is an open object.

    embedded_schema("core.Probe")       a struct, with all that it holds
    embedded_schema("quantity")         a word of the description's format
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

from hortus.schema.builtin.description import FieldDescription, builtin

_NUMBER_OR_TEXT: Final = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
# resource.Quantity, k8s.io/apimachinery, pkg/api/resource/quantity.go; the pattern is controller-gen's for it.
_QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_WORDS: Final[Mapping[str, dict[str, Any]]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "intstr": _NUMBER_OR_TEXT,
    "quantity": {**_NUMBER_OR_TEXT, "pattern": _QUANTITY},
}
_METADATA: Final = "meta.ObjectMeta"
_LATER: Final[Mapping[str, dict[str, Any]]] = {
    "core.PodCertificateProjection": {"userAnnotations": {"type": "object", "additionalProperties": _WORDS["string"]}},
}
"""Fields of k8s.io/api v0.35, which the description (v0.34) does not have and the CRDs of others already accept."""


@functools.cache
def embedded_schema(name: str) -> dict[str, Any]:
    """The schema of the type alias.Name, or of a word; callers share it and leave it as it is.

    Raises KeyError for a type that the description does not have, and for a word that no embedded type needs.
    """
    if name in _WORDS:
        return _WORDS[name]
    if name == _METADATA:
        return {"type": "object"}
    declared = builtin().type(name)
    if declared.values:
        return _WORDS["string"]
    fields = builtin().json_fields(name)
    properties = {key: _field(field) for key, field in fields.items()} | _LATER.get(name, {})
    found: dict[str, Any] = {"type": "object", "properties": properties}
    if required := sorted(key for key, field in fields.items() if field.required):
        found["required"] = required
    # As controller-gen has it, an embedded struct that one writer owns as a whole makes its holder one too.
    if declared.atomic or any(builtin().type(field.ref).atomic for field in declared.fields if not field.name):
        found["x-kubernetes-map-type"] = "atomic"
    return found


def _field(field: FieldDescription) -> dict[str, Any]:
    found = dict(embedded_schema(field.ref or field.kind))
    if field.shape == "list":
        found = {"type": "array", "items": found}
        if field.list_type:
            found["x-kubernetes-list-type"] = field.list_type
        if field.keys:
            found["x-kubernetes-list-map-keys"] = list(field.keys)
    elif field.shape == "map":
        found = {"type": "object", "additionalProperties": found}
    if field.shape != "list" and field.list_type:
        found["x-kubernetes-map-type"] = field.list_type
    if field.default is not None and field.kind != "enum":
        found["default"] = field.default
    return found
