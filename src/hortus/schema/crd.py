"""Makes CustomResourceDefinitions of kinds (apiextensions.k8s.io/v1)."""

from __future__ import annotations

import copy
import datetime
import enum
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

import msgspec

from hortus.schema import descriptions
from hortus.schema.conditions import Condition
from hortus.schema.kind import Facts, Fields, Kind
from hortus.schema.markers import Atomic, CoreType, ListMap, Marker, Shape, ValidationRule

_API_VERSION = (
    "The version of the schema that this object is written in. Servers convert known versions and may refuse others."
)
_KIND = "The type of this object, in CamelCase. It follows from the endpoint and cannot be changed."


class KindError(TypeError):
    """A kind is declared in a way that no CRD can express; the text names the class, the field and the fix."""


def crd(storage: type[Kind], *others: type[Kind]) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind; `others` are further versions, `storage` is the stored one."""
    facts = storage.FACTS
    versions = [_version(cls, storage=cls is storage) for cls in (storage, *others, *facts.former)]
    names = {
        "kind": facts.name,
        "listKind": facts.list_name,
        "plural": facts.plural,
        "singular": facts.singular,
        "shortNames": list(facts.short_names),
        "categories": list(facts.categories),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": facts.crd_name},
        "spec": {
            "group": facts.group,
            "names": {name: value for name, value in names.items() if value},
            "scope": facts.scope,
            "versions": versions,
        },
    }


def _version(cls: type[Kind], *, storage: bool) -> dict[str, Any]:
    facts = cls.FACTS
    version: dict[str, Any] = {"name": facts.version, "served": facts.served, "storage": storage}
    if facts.deprecation is not None:
        version["deprecated"] = True
        if facts.deprecation:
            version["deprecationWarning"] = facts.deprecation
    if facts.columns:
        version["additionalPrinterColumns"] = [column.definition() for column in facts.columns]
    if facts.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in facts.selectable]
    if subresources := _subresources(facts):
        version["subresources"] = subresources
    version["schema"] = {"openAPIV3Schema": schema(cls)}
    return version


def _subresources(facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if facts.status:
        found["status"] = {}
    if facts.scale is not None:
        found["scale"] = facts.scale.definition()
    return found


class _OnlyConditions(Fields, frozen=True):
    """The state, as conditions report it."""

    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """Ready, Reconciling, Stalled and others."""


def schema(cls: type[Kind]) -> dict[str, Any]:
    """The openAPIV3Schema of one version of a kind. A status without a struct of its own holds conditions.

    Raises KindError.
    """
    root = _struct(cls, cls.__name__)
    if cls.FACTS.status and "status" not in root["properties"]:
        root["properties"]["status"] = _struct(_OnlyConditions, "status")
    root["properties"] = {
        "apiVersion": {"type": "string", "description": _API_VERSION},
        "kind": {"type": "string", "description": _KIND},
        **root["properties"],
        "metadata": {"type": "object"},
    }
    required = [name for name in root.pop("required", ()) if name != "metadata"]
    return root | ({"required": required} if required else {})


def _struct(cls: type[msgspec.Struct], where: str) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": {}}
    if text := descriptions.of_class(cls):
        found["description"] = text
    texts = descriptions.of_fields(cls)
    required = []
    for field in msgspec.structs.fields(cls):
        found["properties"][field.encode_name] = _field(field, texts.get(field.name, ""), f"{where}.{field.name}")
        if field.required:
            required.append(field.encode_name)
    if not found["properties"]:
        del found["properties"]
    if required:
        found["required"] = sorted(required)
    found.update(getattr(cls, "__schema__", {}))
    if rules := getattr(cls, "__rules__", ()):
        found["x-kubernetes-validations"] = [rule.keywords() for rule in rules]
    return found


def _field(field: msgspec.structs.FieldInfo, text: str, where: str) -> dict[str, Any]:
    found = _typed(field.type, where)
    if text:
        found["description"] = text
    value = _default(field)
    if value is not None and "default" not in found:
        found["default"] = value
    return found


def _default(field: msgspec.structs.FieldInfo) -> Any:
    """The default to write into the CRD; none where it would have no effect."""
    if field.default is not msgspec.NODEFAULT:
        value = field.default
    elif field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    else:
        return None
    # As JSON has it: a tuple is a list there.
    return msgspec.json.decode(msgspec.json.encode(value)) or None if value is not msgspec.UNSET else None


_SCALARS: Mapping[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bytes: {"type": "string", "format": "byte"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    Any: {"x-kubernetes-preserve-unknown-fields": True},
    dict: {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


def _typed(annotation: Any, where: str) -> dict[str, Any]:
    if isinstance(annotation, NewType):
        return _typed(annotation.__supertype__, where)
    if annotation in _SCALARS:
        return dict(_SCALARS[annotation])
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(arguments[0], arguments[1:], where)
    if origin in (Union, types.UnionType):
        return _union(arguments, where)
    if origin is Literal:
        return {"type": _scalar_name(arguments[0], where), "enum": list(arguments)}
    if origin in (list, tuple, frozenset, set):
        return {"type": "array", "items": _typed(arguments[0], f"{where}[]")}
    if origin is dict:
        return _mapping(arguments, where)
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return _struct(annotation, where)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        values = [member.value for member in annotation]
        return {"type": _scalar_name(values[0], where), "enum": values}
    raise KindError(f"{where}: no schema for {annotation!r}; use scalars, lists, dict[str, ...], structs or Annotated")


def _scalar_name(value: object, where: str) -> str:
    names = {str: "string", bool: "boolean", int: "integer"}
    if type(value) not in names:
        raise KindError(f"{where}: {value!r} cannot be an allowed value; use text, numbers or booleans")
    return names[type(value)]


def _mapping(arguments: tuple[Any, ...], where: str) -> dict[str, Any]:
    if arguments[0] is not str:
        raise KindError(f"{where}: keys of objects are text; use dict[str, ...]")
    if arguments[1] is Any:
        return dict(_SCALARS[dict])
    return {"type": "object", "additionalProperties": _typed(arguments[1], f"{where}{{}}")}


def _union(members: tuple[Any, ...], where: str) -> dict[str, Any]:
    real = [member for member in members if member not in (type(None), msgspec.UnsetType)]
    if set(real) == {int, str}:
        return {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    if len(real) != 1:
        raise KindError(f"{where}: a field has one type; only `int | str` and `... | None` can be unions")
    return _typed(real[0], where)


def _annotated(inner: Any, extras: tuple[Any, ...], where: str) -> dict[str, Any]:
    core = next((extra for extra in extras if isinstance(extra, CoreType)), None)
    shape = next((extra.struct for extra in extras if isinstance(extra, Shape)), inner)
    found = copy.deepcopy(core.keywords()) if core is not None else _typed(shape, where)
    for extra in extras:
        if isinstance(extra, msgspec.Meta):
            found.update(_limits(extra, found))
        elif isinstance(extra, ValidationRule):
            found.setdefault("x-kubernetes-validations", []).append(extra.keywords())
        elif isinstance(extra, Atomic) and found.get("type") == "object":
            found["x-kubernetes-map-type"] = "atomic"
        elif isinstance(extra, Marker) and not isinstance(extra, CoreType):
            found.update(extra.keywords())
    return found


_SIZES = {
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


def _limits(meta: msgspec.Meta, found: dict[str, Any]) -> dict[str, Any]:
    least, most = _SIZES.get(found.get("type", ""), ("minLength", "maxLength"))
    named = {
        least: meta.min_length,
        most: meta.max_length,
        "pattern": meta.pattern,
        "minimum": meta.ge if meta.gt is None else meta.gt,
        "exclusiveMinimum": True if meta.gt is not None else None,
        "maximum": meta.le if meta.lt is None else meta.lt,
        "exclusiveMaximum": True if meta.lt is not None else None,
        "multipleOf": meta.multiple_of,
        "title": meta.title,
        "description": meta.description,
    }
    return {name: value for name, value in named.items() if value is not None} | (meta.extra_json_schema or {})
