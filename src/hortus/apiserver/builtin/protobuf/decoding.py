"""Decodes protobuf to JSON objects, as Go would decode it and encode the struct as JSON.

Unknown fields are skipped, as everywhere in protobuf. The size of the decoded message is bounded, by the number of
values and by depth, whatever its lengths claim.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import orjson

from hortus.apiserver.builtin.protobuf.wire import (
    BYTES,
    FIXED64,
    VARINT,
    WireError,
    read_length,
    read_varint,
    signed,
    skip,
)
from hortus.kube import durations
from hortus.kube.objects import Object, format_time
from hortus.schema.builtin import Description, FieldDescription

MOST_VALUES = 200_000
"""Values of one message. The largest real objects (a CRD of 1 MiB) have some 30,000; an empty value costs about 100
bytes."""
DEEPEST = 64
"""Levels of messages. Pods have 12; only JSON schemas are deeper."""

_SCHEMA = "apiextensions.JSONSchemaProps"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MessageBudget:
    """The remaining budget of one message."""

    __slots__ = ("values",)

    def __init__(self, values: int = MOST_VALUES) -> None:
        self.values = values

    def spend(self) -> None:
        self.values -= 1
        if self.values < 0:
            raise WireError(f"proto: more than {MOST_VALUES} values")


class _Reader(NamedTuple):
    name: str
    shape: str
    wire_type: int
    kind: str
    ref: str


_VARINTS: Mapping[str, Callable[[int], Any]] = {
    "bool": bool,
    "int32": lambda value: signed(value, 32),
    "int64": lambda value: signed(value, 64),
}


class Decoder:
    """Decodes structs of one description."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._plans: dict[str, dict[int, _Reader]] = {}

    def message(self, data: bytes, name: str) -> Object:
        """The object of the struct alias.Name in a whole message. Raises WireError."""
        obj: Object = {}
        self._message(data, 0, len(data), name, obj, MessageBudget(), 0)
        return obj

    def list_message(self, data: bytes, item: str) -> Object:
        """A list's metadata and items."""
        budget = MessageBudget()
        obj: Object = {"metadata": {}, "items": []}
        for number, wire_type, start, end in _fields(data, 0, len(data)):
            if wire_type == BYTES and number == 1:
                self._message(data, start, end, "meta.ListMeta", obj["metadata"], budget, 1)
            elif wire_type == BYTES and number == 2:
                obj["items"].append(self._nested(data, start, end, item, {}, budget, 1))
        return obj

    def _plan(self, name: str) -> dict[int, _Reader]:
        plan = self._plans.get(name)
        if plan is None:
            fields = self._description.type(name).fields
            plan = self._plans[name] = {field.number: _reader(field) for field in fields if field.number}
        return plan

    def _message(
        self, data: bytes, at: int, end: int, name: str, obj: Object, budget: MessageBudget, depth: int
    ) -> None:
        plan = self._plan(name)
        while at < end:
            tag, at = (data[at], at + 1) if data[at] < 128 else read_varint(data, at, end)
            wire_type, reader = tag & 7, plan.get(tag >> 3)
            if reader is None:
                if tag < 8:
                    raise WireError(f"proto: {name.partition('.')[2]}: illegal tag {tag >> 3} (wire type {tag})")
                at = skip(data, at, end, wire_type)
                continue
            budget.spend()
            if wire_type != reader.wire_type:
                at = self._packed(data, at, end, wire_type, reader, obj, budget)
            elif wire_type == VARINT:
                number, at = read_varint(data, at, end)
                _put(obj, reader, _VARINTS[reader.kind](number))
            elif wire_type == FIXED64:
                if at + 8 > end:
                    raise WireError("unexpected EOF")
                _put(obj, reader, struct.unpack_from("<d", data, at)[0])
                at += 8
            else:
                start, at = read_length(data, at, end)
                self._delimited(data, start, at, reader, obj, budget, depth)

    def _packed(
        self, data: bytes, at: int, end: int, wire_type: int, reader: _Reader, obj: Object, budget: MessageBudget
    ) -> int:
        """Numbers of a list, packed into one field."""
        if wire_type != BYTES or reader.wire_type != VARINT or reader.shape != "list":
            raise WireError(f"proto: wrong wireType = {wire_type} for field {reader.name or reader.ref}")
        at, stop = read_length(data, at, end)
        while at < stop:
            budget.spend()
            number, at = read_varint(data, at, stop)
            _put(obj, reader, _VARINTS[reader.kind](number))
        return stop

    def _delimited(
        self, data: bytes, start: int, end: int, reader: _Reader, obj: Object, budget: MessageBudget, depth: int
    ) -> None:
        if not reader.name:
            self._nested(data, start, end, reader.ref, obj, budget, depth + 1)
        elif reader.shape == "map":
            self._entry(data, start, end, reader, obj, budget, depth)
        elif reader.kind == "struct" and not reader.shape:
            # A repeated field is merged into the earlier one.
            known = obj.get(reader.name)
            obj[reader.name] = self._nested(data, start, end, reader.ref, known or {}, budget, depth + 1)
        else:
            _put(obj, reader, self._value(data, start, end, reader, budget, depth))

    def _nested(
        self, data: bytes, start: int, end: int, name: str, obj: Object, budget: MessageBudget, depth: int
    ) -> Object:
        if depth > DEEPEST:
            raise WireError(f"proto: messages nested more than {DEEPEST} deep")
        self._message(data, start, end, name, obj, budget, depth)
        return obj

    def _entry(
        self, data: bytes, start: int, end: int, reader: _Reader, obj: Object, budget: MessageBudget, depth: int
    ) -> None:
        name, known, at = "", False, start
        value: Any = None
        while at < end:
            tag, at = read_varint(data, at, end)
            number = tag >> 3
            if number not in (1, 2):
                at = skip(data, at, end, tag & 7)
                continue
            first, at = read_length(data, at, end)  # whatever its wire type says, as Go reads it
            if number == 1:
                name = _text(data[first:at])
            else:
                value, known = self._value(data, first, at, reader, budget, depth), True
        if not known:
            value = self._value(data, end, end, reader, budget, depth)
        obj.setdefault(reader.name, {})[name] = value

    def _value(self, data: bytes, start: int, end: int, reader: _Reader, budget: MessageBudget, depth: int) -> Any:
        if reader.kind == "struct":
            return self._nested(data, start, end, reader.ref, {}, budget, depth + 1)
        if reader.kind.startswith("schemaOr"):
            return self._schema_or(data, start, end, reader.kind, budget, depth)
        read = _READERS.get(reader.kind)
        if read is not None:
            return read(data[start:end])
        return _STRUCTURED[reader.kind](_collect(data, start, end, budget))

    def _schema_or(self, data: bytes, start: int, end: int, kind: str, budget: MessageBudget, depth: int) -> Any:
        allowed = False
        several: list[Any] = []
        for number, wire_type, first, last in _fields(data, start, end):
            budget.spend()
            if kind == "schemaOrBool" and number == 1:
                allowed = bool(first)
            elif wire_type != BYTES:
                raise WireError(f"proto: wrong wireType = {wire_type} for field {kind}")
            elif kind == "schemaOrStrings" and number == 2:
                several.append(_text(data[first:last]))
            elif kind == "schemaOrArray" and number == 2:
                several.append(self._nested(data, first, last, _SCHEMA, {}, budget, depth + 1))
            elif number == (2 if kind == "schemaOrBool" else 1):
                return self._nested(data, first, last, _SCHEMA, {}, budget, depth + 1)
        return allowed if kind == "schemaOrBool" else several or None


def _reader(field: FieldDescription) -> _Reader:
    wire_type = VARINT if field.kind in _VARINTS else FIXED64 if field.kind == "float64" else BYTES
    return _Reader(field.name, field.shape, wire_type, field.kind, field.ref)


def _put(obj: Object, reader: _Reader, value: Any) -> None:
    if reader.shape == "list":
        obj.setdefault(reader.name, []).append(value)
    else:
        obj[reader.name] = value


def _fields(data: bytes, at: int, end: int) -> list[tuple[int, int, int, int]]:
    """Yields number, wire type and payload's bounds of each field; for varints the number itself as the first bound."""
    found: list[tuple[int, int, int, int]] = []
    while at < end:
        tag, at = read_varint(data, at, end)
        if tag < 8:
            raise WireError(f"proto: illegal tag {tag >> 3} (wire type {tag})")
        if tag & 7 == VARINT:
            value, at = read_varint(data, at, end)
            found.append((tag >> 3, VARINT, value, 0))
        elif tag & 7 == BYTES:
            start, at = read_length(data, at, end)
            found.append((tag >> 3, BYTES, start, at))
        else:
            at = skip(data, at, end, tag & 7)
    return found


def _collect(data: bytes, start: int, end: int, budget: MessageBudget) -> dict[int, list[Any]]:
    """The fields of a small message: numbers as they are, the rest as bytes."""
    found: dict[int, list[Any]] = {}
    for number, wire_type, first, last in _fields(data, start, end):
        budget.spend()
        found.setdefault(number, []).append(first if wire_type == VARINT else data[first:last])
    return found


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise WireError("proto: a string is not valid UTF-8") from None


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


_Fields = dict[int, list[Any]]


def _number(fields: _Fields, number: int, bits: int = 64) -> int:
    value = fields.get(number, [0])[-1]
    if not isinstance(value, int):
        raise WireError("proto: wrong wireType = 2 for a number")
    return signed(value, bits)


def _last(fields: _Fields, number: int) -> bytes:
    value = fields.get(number, [b""])[-1]
    if not isinstance(value, bytes):
        raise WireError("proto: wrong wireType = 0 for a string")
    return value


def _moment(fields: _Fields) -> datetime:
    try:
        micros = _number(fields, 2, 32) // 1000
        return _EPOCH + timedelta(seconds=_number(fields, 1), microseconds=micros)
    except OverflowError:
        raise WireError("proto: a time is out of range") from None


def _time(fields: _Fields) -> str | None:
    return format_time(_moment(fields).timestamp()) if fields else None


def _micro_time(fields: _Fields) -> str | None:
    return _moment(fields).isoformat(timespec="microseconds").replace("+00:00", "Z") if fields else None


def _duration(fields: _Fields) -> str:
    return durations.format(_number(fields, 1))


def _quantity(fields: _Fields) -> str:
    return _text(_last(fields, 1)) or "0"


def _int_or_string(fields: _Fields) -> int | str:
    return _text(_last(fields, 3)) if _number(fields, 1) == 1 else _number(fields, 2, 32)


def _json(fields: _Fields) -> Any:
    raw = _last(fields, 1)
    try:
        return orjson.loads(raw) if raw else None
    except orjson.JSONDecodeError:
        raise WireError("proto: a raw field does not hold JSON") from None


def _strings(fields: _Fields) -> list[str]:
    if not all(isinstance(raw, bytes) for raw in fields.get(1, ())):
        raise WireError("proto: wrong wireType = 0 for a string")
    return [_text(raw) for raw in fields.get(1, ())]


_READERS: Mapping[str, Callable[[bytes], Any]] = {"string": _text, "enum": _text, "bytes": _base64}
_STRUCTURED: Mapping[str, Callable[[_Fields], Any]] = {
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
