"""Gives an object the shape that it gets in kube-apiserver, where JSON is decoded into Go structs and encoded again.

Nulls and empty optional values are dropped, structs that Go never omits are added (`resources: {}`, `status: {}`),
quantities and times take their canonical form, static defaults are filled in, and a value of the wrong type is refused
with Go's message. Clients written for a real cluster compare stored objects with sent ones, so this has to match. Works
in place, one pass.
"""

from __future__ import annotations

import binascii
import functools
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from hortus.schema.builtin.description import Description, FieldDescription

Object = dict[str, Any]
Canonical = Callable[[str], str]
"""From the text of a scalar to its canonical text; raises ValueError with Go's message."""

_GO_TYPES = {
    "string": "string",
    "enum": "string",
    "bool": "bool",
    "int32": "int32",
    "int64": "int64",
    "float64": "float64",
    "bytes": "[]uint8",
    "duration": "string",
    "strings": "[]string",
    "time": "string",
    "microtime": "string",
}
_GO_KINDS = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
_HEAD = frozenset(("apiVersion", "kind", "metadata"))
_TYPE_META = frozenset(("apiVersion", "kind"))
_RANGES = {"int32": 1 << 31, "int64": 1 << 63}

# Kinds of value that Go's omitempty does not omit when they are held by value.
_SCHEMA = "apiextensions.JSONSchemaProps"
_EXPONENTS_FROM = 1e21
_UNIONS = frozenset({"schemaOrBool", "schemaOrArray", "schemaOrStrings"})
_NULL_WHEN_ZERO = _UNIONS | {"time", "microtime", "raw", "bytes", "json", "strings", "fields"}
_DEEPEST = 100
"""Levels of structs; only JSON schemas nest without end."""
_STRUCTS = frozenset({"struct", "time", "microtime", "intstr", "quantity", "raw", "duration"})


class ShapeError(ValueError):
    """A value that Go could not decode. The text is Go's and follows `cannot be handled as a ...: `."""


class _Plan:
    """The plan for one struct: its fields, defaults and conversions."""

    __slots__ = ("defaults", "fields", "fillers", "name")

    def __init__(self, name: str, fields: dict[str, FieldDescription], defaults: Object) -> None:
        self.name = name
        self.fields = fields
        self.defaults = [(key, fields[key].pointer, orjson.dumps(value)) for key, value in defaults.items()]
        self.fillers = [(key, field) for key, field in fields.items() if _filled(field)]


def _filled(field: FieldDescription) -> bool:
    if field.omit_zero:
        return False
    if field.kind in _STRUCTS and not field.shape and not field.pointer:
        return True
    return field.always


class Shapes:
    """Shapes objects by the types of one description.

    `defaults` are static ones by the alias.Name of their type, `canonical` the readers of the words quantity, time,
    microtime and duration. With `embedded` an error names embedded structs in the path of a field, as Go does from 1.24
    on.
    """

    def __init__(
        self,
        description: Description,
        defaults: Mapping[str, Object],
        canonical: Mapping[str, Canonical],
        *,
        embedded: bool = False,
    ) -> None:
        self._description = description
        self._embedded = embedded
        self._defaults = defaults
        self._plans: dict[str, _Plan] = {}
        self._scalars: dict[str, Callable[[Any, str, str], Any]] = {
            "string": _string,
            "enum": _string,
            "bool": _bool,
            "int32": functools.partial(_integer, kind="int32"),
            "int64": functools.partial(_integer, kind="int64"),
            "float64": _float,
            "bytes": _bytes,
            "intstr": _int_or_string,
            **{word: functools.partial(_canonical, read=read, word=word) for word, read in canonical.items()},
        }

    def shape(self, obj: Object, name: str) -> None:
        """Give `obj`, a whole object of the kind alias.Name, the shape a real server stores.

        Its metadata is unchanged: the server reads that itself. Raises ShapeError when a value is of the wrong type.
        """
        self._struct(obj, name, "", 0, _HEAD)

    def shape_whole(self, obj: Object, name: str) -> None:
        """The same, its metadata included."""
        self._struct(obj, name, "", 0, _TYPE_META)

    def shape_field(self, obj: Object, name: str, key: str) -> None:
        """The same for one field of an object, such as `status`; the others are ignored."""
        value = obj.get(key)
        if value is not None:
            obj[key] = self._value(value, self._description.json_fields(name)[key], name, key, 0)

    def _plan(self, name: str) -> _Plan:
        plan = self._plans.get(name)
        if plan is None:
            fields = self._description.json_fields(name)
            plan = self._plans[name] = _Plan(name, fields, self._defaults.get(name, {}))
        return plan

    def _struct(self, obj: Object, name: str, path: str, depth: int, keep: frozenset[str] = frozenset()) -> None:
        if depth > _DEEPEST:
            raise ShapeError("exceeded max depth")
        plan = self._plan(name)
        for key in list(obj):
            if key in keep:
                continue
            field = plan.fields.get(key)
            if field is None:
                del obj[key]
                continue
            value = obj[key]
            if value is not None:
                part = f"{field.within}.{key}" if self._embedded and field.within else key
                value = self._value(value, field, name, f"{path}.{part}" if path else part, depth)
            if value is None or (not value and _omitted_when_empty(field)):
                del obj[key]
            else:
                obj[key] = value
        for key, pointer, default in plan.defaults:
            if key not in obj or not (pointer or obj[key] or isinstance(obj[key], dict)):
                obj[key] = orjson.loads(default)
        for key, field in plan.fillers:
            if key not in obj:
                obj[key] = self._zero(field)

    def _zero(self, field: FieldDescription) -> Any:
        if field.shape or field.pointer:
            return None
        if field.kind == "struct":
            empty: Object = {}
            self._struct(empty, field.ref, "", 0)
            return empty
        return self._zero_scalar(field)

    def _zero_scalar(self, field: FieldDescription) -> Any:
        """The zero value of a scalar, which Go also makes of a null in a list or map."""
        if field.kind in _NULL_WHEN_ZERO:
            return None
        return {"string": "", "enum": "", "bool": False, "quantity": "0", "duration": "0s"}.get(field.kind, 0)

    def _value(self, value: Any, field: FieldDescription, owner: str, path: str, depth: int) -> Any:
        if field.shape == "list":
            if type(value) is not list:
                raise _mismatch(value, "[]" + self._go_type(field), owner, path)
            value[:] = [self._element(item, field, owner, path, depth) for item in value]
            return value
        if field.shape == "map":
            if type(value) is not dict:
                raise _mismatch(value, "map[string]" + self._go_type(field), owner, path)
            for key, item in value.items():
                value[key] = self._element(item, field, owner, path, depth)
            return value
        return self._element(value, field, owner, path, depth)

    def _element(self, value: Any, field: FieldDescription, owner: str, path: str, depth: int) -> Any:
        if field.kind == "struct":
            if value is None:
                value = {}
            if type(value) is not dict:
                raise _mismatch(value, self._go_type(field), owner, path)
            self._struct(value, field.ref, path, depth + 1)
            return value
        if value is None:
            return None if field.pointer else self._zero_scalar(field)
        if field.go_name and type(value) is not str:
            raise _mismatch(value, field.go_name, owner, path)
        scalar = self._scalars.get(field.kind)
        if scalar is not None:
            return scalar(value, owner, path)
        return self._union(value, path, depth) if field.kind in _UNIONS else value

    def _union(self, value: Any, path: str, depth: int) -> Any:
        """The unions of JSON schema: each schema in them is shaped as one."""
        if type(value) is dict:
            self._struct(value, _SCHEMA, path, depth + 1)
        elif type(value) is list:
            for item in value:
                self._union(item, path, depth)
        return value

    def _go_type(self, field: FieldDescription) -> str:
        if field.kind != "struct":
            return field.go_name or _GO_TYPES.get(field.kind, field.kind)
        alias, _, local = field.ref.partition(".")
        version = self._description.openapi_name(field.ref).split(".")[-2]
        return f"{version}.{local}" if alias else local


def _omitted_when_empty(field: FieldDescription) -> bool:
    if field.shape:
        return not field.always
    return not (field.always or field.pointer or field.kind in _STRUCTS)


def _mismatch(value: object, go_type: str, owner: str, path: str) -> ShapeError:
    kind = _GO_KINDS.get(type(value), "value")
    if kind == "number" and go_type.startswith("int"):
        kind = f"number {value}"
    struct = owner.partition(".")[2]
    return ShapeError(f"json: cannot unmarshal {kind} into Go struct field {struct}.{path} of type {go_type}")


def _string(value: Any, owner: str, path: str) -> str:
    if type(value) is not str:
        raise _mismatch(value, "string", owner, path)
    return value


def _bool(value: Any, owner: str, path: str) -> bool:
    if type(value) is not bool:
        raise _mismatch(value, "bool", owner, path)
    return value


def _integer(value: Any, owner: str, path: str, *, kind: str) -> int:
    limit = _RANGES[kind]
    if type(value) is not int or not -limit <= value < limit:
        raise _mismatch(value, kind, owner, path)
    return value


def _float(value: Any, owner: str, path: str) -> float:
    """The number as Go writes it: without a fraction where there is none."""
    if type(value) not in (int, float):
        raise _mismatch(value, "float64", owner, path)
    return int(value) if value == int(value) and abs(value) < _EXPONENTS_FROM else float(value)


def _bytes(value: Any, owner: str, path: str) -> str:
    if type(value) is not str:
        raise _mismatch(value, "[]uint8", owner, path)
    try:
        binascii.a2b_base64(value, strict_mode=True)
    except ValueError:  # binascii.Error is one, and so is the error for text that is no ASCII
        raise ShapeError(f"illegal base64 data at input byte {_first_bad_byte(value)}") from None
    return value


def _first_bad_byte(text: str) -> int:
    for place, character in enumerate(text):
        if not (character.isascii() and (character.isalnum() or character in "+/")):
            return place
    return len(text) - len(text) % 4


def _canonical(value: Any, owner: str, path: str, *, read: Canonical, word: str) -> str:
    if word == "quantity" and type(value) is not str:
        value = str(value)  # Quantity reads the bytes of any value, and refuses all but numbers
    try:
        return read(_string(value, owner, path))
    except ValueError as error:
        raise ShapeError(str(error)) from None


def _int_or_string(value: Any, owner: str, path: str) -> int | str:
    if type(value) is str:
        return value
    return _integer(value, owner, path, kind="int32")


def static_defaults(text: str) -> dict[str, Object]:
    """Static defaults by the alias.Name of their type, from lines `alias.Name field=JSON ...`."""
    found: dict[str, Object] = {}
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        name, *pairs = line.split(" ")
        found[name] = {key: orjson.loads(value) for key, _, value in (pair.partition("=") for pair in pairs)}
    return found
