"""Encodes JSON objects to protobuf, byte for byte as gogo-proto's generated code in k8s.io/api writes them.

Its rules: fields in the order of their numbers; values that Go holds by value are always written, even empty; pointers,
lists, maps and byte slices only when they are set; maps sorted by key.
"""

from __future__ import annotations

import base64
import functools
import struct
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from hortus.apiserver.builtin.protobuf.wire import BYTES, FIXED64, VARINT, delimited, key, varint
from hortus.kube import durations
from hortus.kube.objects import Object, parse_time
from hortus.schema.builtin import Description, FieldDescription

_Write = Callable[[Any], bytes]
"""Encodes a value, with its length before it where it needs one."""
_Emit = Callable[[Object, list[bytes]], None]
"""Appends the encoding of one field of an object."""

_FIRST, _SECOND, _THIRD = (key(number, BYTES) for number in (1, 2, 3))
_FIRST_NUMBER, _SECOND_NUMBER = (key(number, VARINT) for number in (1, 2))
_ZEROS: Mapping[str, Any] = {"string": "", "enum": "", "bool": False, "int32": 0, "int64": 0, "float64": 0.0}
_SCHEMA = "apiextensions.JSONSchemaProps"


class MessageEncoder:
    """Encodes structs of one description."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._plans: dict[str, list[_Emit]] = {}

    def message(self, obj: Object, name: str) -> bytes:
        """The message of an object of the struct alias.Name."""
        out: list[bytes] = []
        for emit in self._plan(name):
            emit(obj, out)
        return b"".join(out)

    def list_message(self, obj: Object, item: str) -> bytes:
        """The message of a list of such structs: metadata and items, as every list kind has them."""
        out = [_FIRST, delimited(self.message(obj.get("metadata") or {}, "meta.ListMeta"))]
        for entry in obj.get("items") or ():
            out += (_SECOND, delimited(self.message(entry, item)))
        return b"".join(out)

    def _plan(self, name: str) -> list[_Emit]:
        plan = self._plans.get(name)
        if plan is None:
            fields = sorted((f for f in self._description.type(name).fields if f.number), key=lambda f: f.number)
            plan = self._plans[name] = [self._emitter(field) for field in fields]
        return plan

    def _emitter(self, field: FieldDescription) -> _Emit:
        wire_type = VARINT if field.kind in ("bool", "int32", "int64") else BYTES
        head, write = key(field.number, FIXED64 if field.kind == "float64" else wire_type), self._writer(field)
        if not field.name:
            return _embedded(head, write)
        if field.shape == "list":
            return _list(field.name, head, write)
        if field.shape == "map":
            return _map(field.name, head, write)
        if field.pointer or field.kind == "bytes":
            return _optional(field.name, head, write)
        return _always(field.name, head, write, _ZEROS.get(field.kind))

    def _writer(self, field: FieldDescription) -> _Write:
        if field.kind == "struct":
            return lambda value: delimited(self.message(value or {}, field.ref))
        if field.kind.startswith("schemaOr"):
            return functools.partial(self._schema_or, kind=field.kind)
        return _WRITERS[field.kind]

    def _schema_or(self, value: Any, *, kind: str) -> bytes:
        """The three unions of JSON schema: a schema, or instead a boolean, schemas or names."""
        out: list[bytes] = []
        if kind == "schemaOrBool":
            out += (_FIRST_NUMBER, varint(bool(value is not False and value is not None)))
        if isinstance(value, dict):
            out += (_SECOND if kind == "schemaOrBool" else _FIRST, delimited(self.message(value, _SCHEMA)))
        elif isinstance(value, list):
            for item in value:
                out += (_SECOND, _text(item) if kind == "schemaOrStrings" else delimited(self.message(item, _SCHEMA)))
        return delimited(b"".join(out))


def _embedded(head: bytes, write: _Write) -> _Emit:
    def emit(obj: Object, out: list[bytes]) -> None:
        out += (head, write(obj))

    return emit


def _list(name: str, head: bytes, write: _Write) -> _Emit:
    def emit(obj: Object, out: list[bytes]) -> None:
        for value in obj.get(name) or ():
            out += (head, write(value))

    return emit


def _map(name: str, head: bytes, write: _Write) -> _Emit:
    value_head = key(2, BYTES)

    def emit(obj: Object, out: list[bytes]) -> None:
        values = obj.get(name)
        if values:
            for entry, value in sorted(values.items()):
                pair = _FIRST + _text(entry) + (b"" if value is None else value_head + write(value))
                out += (head, delimited(pair))

    return emit


def _optional(name: str, head: bytes, write: _Write) -> _Emit:
    def emit(obj: Object, out: list[bytes]) -> None:
        value = obj.get(name)
        if value is not None:
            out += (head, write(value))

    return emit


def _always(name: str, head: bytes, write: _Write, zero: Any) -> _Emit:
    empty = head + write(zero)

    def emit(obj: Object, out: list[bytes]) -> None:
        value = obj.get(name)
        if value is None:
            out.append(empty)
        else:
            out += (head, write(value))

    return emit


def _text(value: str) -> bytes:
    return delimited(value.encode())


def _bytes(value: str) -> bytes:
    return delimited(base64.b64decode(value))


def _float(value: float) -> bytes:
    return struct.pack("<d", value)


def _time(value: str | None) -> bytes:
    """Whole seconds: the generated code drops the rest, as JSON does. The zero time is an empty message."""
    if value is None:
        return b"\0"
    return delimited(_FIRST_NUMBER + varint(int(parse_time(value) // 1)) + _SECOND_NUMBER + b"\0")


def _micro_time(value: str | None) -> bytes:
    if value is None:
        return b"\0"
    seconds = int(parse_time(value[:19] + "Z"))
    micros = int(value[20:26]) if "." in value else 0
    return delimited(_FIRST_NUMBER + varint(seconds) + _SECOND_NUMBER + varint(micros * 1000))


def _duration(value: str | None) -> bytes:
    return delimited(_FIRST_NUMBER + varint(durations.parse(value) if value else 0))


def _quantity(value: str | None) -> bytes:
    return delimited(_FIRST + _text("0" if value is None else value))


def _int_or_string(value: int | str | None) -> bytes:
    if isinstance(value, str):
        return delimited(_FIRST_NUMBER + b"\1" + _SECOND_NUMBER + b"\0" + _THIRD + _text(value))
    return delimited(_FIRST_NUMBER + b"\0" + _SECOND_NUMBER + varint(value or 0) + _THIRD + b"\0")


def _json(value: Any) -> bytes:
    """A message with JSON in its one field; nothing in it for null."""
    return b"\0" if value is None else delimited(_FIRST + delimited(orjson.dumps(value)))


def _strings(value: list[str] | None) -> bytes:
    return delimited(b"".join(_FIRST + _text(item) for item in value or ()))


_WRITERS: Mapping[str, _Write] = {
    "string": _text,
    "enum": _text,
    "bool": lambda value: varint(bool(value)),
    "int32": varint,
    "int64": varint,
    "float64": _float,
    "bytes": _bytes,
    "time": _time,
    "microtime": _micro_time,
    "duration": _duration,
    "quantity": _quantity,
    "intstr": _int_or_string,
    "raw": _json,
    "fields": _json,
    "json": _json,
    "strings": _strings,
}
