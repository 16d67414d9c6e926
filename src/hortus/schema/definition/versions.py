"""The versions of a CustomResourceDefinition: schema, subresources, columns, selectable fields, deprecation.

A problem that all versions share is reported once, at the top level of the spec, under the names of its internal form,
as kube-apiserver reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hortus.schema import fieldpath, names
from hortus.schema.definition.defaults import check_defaults
from hortus.schema.definition.keywords import check_keywords, check_rules
from hortus.schema.definition.structure import check_structural
from hortus.schema.nodes import SchemaError, SchemaNode, compile_node
from hortus.schema.problems import FieldError, duplicate, forbidden, invalid, not_supported, required, too_many

Definition = Mapping[str, Any]

MAX_SELECTABLE_FIELDS = 8
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_ROOT_KEYWORDS = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}


def check_versions(versions: list[Definition]) -> Iterator[FieldError]:
    """The problems of `spec.versions`, which is not empty."""
    for number, version in enumerate(versions):
        path = f"spec.versions[{number}]"
        if complaint := names.dns1035_label(version.get("name") or ""):
            yield invalid(f"{path}.name", version.get("name") or "", complaint)
            if number == 0:
                yield invalid("spec.version", version.get("name") or "", complaint)
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield required(f"{path}.schema.openAPIV3Schema")
        yield from _deprecation(version, path)
    yield from _parts(versions, "schema", "validation", _schema)
    yield from _parts(versions, "subresources", "subresources", _subresources)
    yield from _parts(versions, "additionalPrinterColumns", "additionalPrinterColumns", _columns)
    yield from _parts(versions, "selectableFields", "selectableFields", _selectable)
    spelled = [version.get("name") for version in versions]
    if len(set(spelled)) != len(spelled):
        yield invalid("spec.versions", versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid("spec.versions", versions, "must have exactly one version marked as storage version")


_Check = Callable[[Any, Definition, str], Iterator[FieldError]]


def _parts(versions: list[Definition], part: str, shared: str, check: _Check) -> Iterator[FieldError]:
    """Checks one part of every version, or once when all versions have the same."""
    first = versions[0].get(part)
    if all(version.get(part) == first for version in versions):
        if first:
            yield from check(first, versions[0], f"spec.{shared}")
        return
    for number, version in enumerate(versions):
        if version.get(part):
            yield from check(version[part], version, f"spec.versions[{number}].{part}")


def _deprecation(version: Definition, path: str) -> Iterator[FieldError]:
    text = version.get("deprecationWarning")
    if text is None:
        return
    where = f"{path}.deprecationWarning"
    if not version.get("deprecated"):
        yield invalid(where, text, "can only be set for deprecated versions")
        return
    if len(text.encode()) > 256:
        yield invalid(where, text, "must be <= 256 characters long")
    if not text:
        yield invalid(where, text, "must not be an empty string")
    odd = next((place for place, char in enumerate(text) if not char.isprintable()), None)
    if odd is not None:
        index = len(text[:odd].encode())
        words = f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
        yield invalid(where, text, words)


def _schema(part: Definition, version: Definition, path: str) -> Iterator[FieldError]:
    schema = part.get("openAPIV3Schema")
    where = f"{path}.openAPIV3Schema"
    if not isinstance(schema, Mapping):
        return
    if "status" in (version.get("subresources") or {}):
        yield from _root_with_status(schema, where)
    if schema.get("nullable"):
        yield forbidden(f"{where}.nullable", "nullable cannot be true at the root")
    found = check_structural(schema, where)
    deeper = check_keywords(schema, where)
    node = None if found or deeper else _node(schema, where, found)
    if node is not None:
        found += check_defaults(node, where)
    if node is not None and not found and not deeper:
        deeper = check_rules(node, where)
    yield from found
    yield from deeper


def _node(schema: Definition, path: str, found: list[FieldError]) -> SchemaNode | None:
    try:
        return compile_node(schema)
    except SchemaError as error:
        found.append(invalid(path, "", str(error)))
        return None


def _root_with_status(schema: Definition, path: str) -> Iterator[FieldError]:
    """With a status subresource the status is checked alone, so nothing at the root may tie it to the rest."""
    if schema.get("type") != "object":
        text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield invalid(f"{path}.type", schema.get("type") or "", text)
    elif any(value and name not in _ROOT_KEYWORDS for name, value in schema.items()):
        allowed = " ".join(_ROOT_KEYWORDS.values())
        text = f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
        yield invalid(path, dict(schema), text)


def _subresources(part: Definition, version: Definition, path: str) -> Iterator[FieldError]:
    scale = part.get("scale")
    if scale is None:
        return
    for name, roots in (("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",))):
        if not scale.get(name):
            yield required(f"{path}.scale.{name}")
        else:
            yield from _simple_path(scale[name], f"{path}.scale.{name}", roots)
    if scale.get("labelSelectorPath"):
        yield from _simple_path(scale["labelSelectorPath"], f"{path}.scale.labelSelectorPath", (".spec.", ".status."))


def _simple_path(text: str, path: str, roots: tuple[str, ...] = ()) -> Iterator[FieldError]:
    if not text.startswith("."):
        yield invalid(path, text, "must be a simple json path starting with .")
    elif roots and not text.startswith(roots):
        under = "either .spec or .status" if len(roots) > 1 else roots[0].rstrip(".")
        yield invalid(path, text, f"should be a json path under {under}")


def _columns(part: list[Definition], version: Definition, path: str) -> Iterator[FieldError]:
    for number, column in enumerate(part):
        where = f"{path}[{number}]"
        kind, style, place = column.get("type") or "", column.get("format") or "", column.get("jsonPath") or ""
        if not column.get("name"):
            yield required(f"{where}.name")
        if kind not in _COLUMN_TYPES:
            text = f"must be one of {','.join(_COLUMN_TYPES)}"
            yield invalid(f"{where}.type", kind, text) if kind else required(f"{where}.type", text)
        if style and style not in _COLUMN_FORMATS:
            yield invalid(f"{where}.format", style, f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not place:
            yield required(f"{where}.JSONPath")
        else:
            yield from _simple_path(place, f"{where}.JSONPath")


def _selectable(part: list[Definition], version: Definition, path: str) -> Iterator[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    ignored: list[FieldError] = []
    node = _node(schema, path, ignored) if isinstance(schema, Mapping) else None
    if node is None:
        return
    seen: set[str] = set()
    for number, field in enumerate(part):
        yield from _selectable_field(field.get("jsonPath") or "", node, f"{path}[{number}].jsonPath", seen)
    if len(seen) > MAX_SELECTABLE_FIELDS:
        yield too_many(path, len(seen), MAX_SELECTABLE_FIELDS)


def _selectable_field(text: str, node: SchemaNode, path: str, seen: set[str]) -> Iterator[FieldError]:
    if not text:
        yield required(path)
        return
    found = None if "[" in text else fieldpath.walk(text, node)
    if found is None:
        why = "array notation is not allowed" if "[" in text else "does not refer to a valid field"
        yield invalid(path, text, f"is an invalid path: {why}")
        return
    shown, target = found
    if shown.split(".")[0] == "metadata":
        yield invalid(path, text, "must not point to fields in metadata")
    if target.names not in (("string",), ("boolean",), ("integer",)):
        yield invalid(
            path,
            text,
            "must point to a field of type string, boolean or integer."
            " Enum string fields and strings with formats are allowed.",
        )
    if shown in seen:
        yield duplicate(path, text)
    seen.add(shown)


def check_choice(value: str, allowed: tuple[str, ...], path: str) -> Iterator[FieldError]:
    """A problem unless `value` is one of those allowed."""
    if not value:
        yield required(path)
    elif value not in allowed:
        yield not_supported(path, value, allowed)
