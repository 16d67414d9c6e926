"""/openapi/v2 as protobuf, the only form that kubectl up to 1.32 reads when it validates a `v1` List.

The messages are those of gnostic's openapiv2/OpenAPIv2.proto, as far as the documents use them: tables hold the number
and the encoding of each field, and other fields are omitted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

import orjson

from hortus.apiserver.builtin.protobuf.wire import BYTES, FIXED64, VARINT, delimited, key, varint
from hortus.apiserver.turns import TurnPace

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ASKED_AS = frozenset({MEDIA_TYPE, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"})
_KEPT = 4
"""Documents of some hundred KiB; clusters without custom kinds share one."""

_Write = Callable[[int, Any], bytes]
"""Field number and value -> the field."""


async def packed(document: bytes, pace: TurnPace) -> bytes:
    """The JSON document as protobuf, made in a thread."""
    return await pace.aside(partial(_packed, document))


@lru_cache(maxsize=_KEPT)
def _packed(document: bytes) -> bytes:
    return _message(_DOCUMENT, orjson.loads(document))


def _message(fields: Mapping[str, tuple[int, _Write]], value: Mapping[str, Any], extensions: int = 0) -> bytes:
    """`extensions` is the number of vendor_extension, where a message has it."""
    parts = [write(number, value[name]) for name, (number, write) in fields.items() if name in value]
    if extensions:
        parts += [_field(extensions, _named(name, _any(each))) for name, each in value.items() if name.startswith("x-")]
    return b"".join(parts)


def _field(number: int, payload: bytes) -> bytes:
    return key(number, BYTES) + delimited(payload)


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_text(number, each) for each in values)


def _number(number: int, value: int) -> bytes:
    return key(number, VARINT) + varint(int(value))


def _double(number: int, value: float) -> bytes:
    return key(number, FIXED64) + struct.pack("<d", value)


def _any(value: Any) -> bytes:
    """An Any holds YAML, of which JSON is a part."""
    return _field(2, orjson.dumps(value))


def _anything(number: int, value: Any) -> bytes:
    return _field(number, _any(value))


def _anythings(number: int, values: Iterable[Any]) -> bytes:
    return b"".join(_anything(number, each) for each in values)


def _named(name: str, payload: bytes) -> bytes:
    return _text(1, name) + _field(2, payload)


def _nested(number: int, value: Any, *, encode: Callable[[Any], bytes]) -> bytes:
    return _field(number, encode(value))


def _schema(value: Mapping[str, Any]) -> bytes:
    return _message(_SCHEMA, value, 31)


def _types(value: Any) -> bytes:
    return _texts(1, [value] if isinstance(value, str) else value)


def _items(value: Any) -> bytes:
    return b"".join(_field(1, _schema(each)) for each in (value if isinstance(value, list) else [value]))


def _additional(value: Any) -> bytes:
    return _number(2, value) if isinstance(value, bool) else _field(1, _schema(value))


def _members(number: int, encode: Callable[[Any], bytes], value: Mapping[str, Any]) -> bytes:
    """A map: a list of pairs."""
    return b"".join(_field(number, _named(name, encode(each))) for name, each in value.items())


def _operation(value: Mapping[str, Any]) -> bytes:
    return _message(_OPERATION, value, 13)


def _parameters(number: int, values: Iterable[Mapping[str, Any]]) -> bytes:
    """All parameters are in the query: ParametersItem, Parameter, NonBodyParameter, QueryParameterSubSchema."""
    found = b""
    for each in values:
        query = _text(2, "query") + _text(4, each["name"]) + _text(6, "string")
        found += _field(number, _field(1, _field(2, _field(3, query))))
    return found


def _response(value: Mapping[str, Any]) -> bytes:
    """ResponseValue, Response; its SchemaItem holds a Schema."""
    schema = value.get("content", {}).get("application/json", {}).get("schema")
    shown = _text(1, value.get("description", "")) + (_field(2, _field(1, _schema(schema))) if schema else b"")
    return _field(1, shown)


_SCHEMAS = partial(_members, 1, _schema)
_SCHEMA: dict[str, tuple[int, _Write]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _anything),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _number),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _number),
    "maxLength": (11, _number),
    "minLength": (12, _number),
    "pattern": (13, _text),
    "maxItems": (14, _number),
    "minItems": (15, _number),
    "uniqueItems": (16, _number),
    "maxProperties": (17, _number),
    "minProperties": (18, _number),
    "required": (19, _texts),
    "enum": (20, _anythings),
    "additionalProperties": (21, partial(_nested, encode=_additional)),
    "type": (22, partial(_nested, encode=_types)),
    "items": (23, partial(_nested, encode=_items)),
    "properties": (25, partial(_nested, encode=_SCHEMAS)),
    "example": (30, _anything),
}
_OPERATION: dict[str, tuple[int, _Write]] = {
    "parameters": (8, _parameters),
    "responses": (9, partial(_nested, encode=partial(_members, 1, _response))),
}
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_PATH: dict[str, tuple[int, _Write]] = {
    method: (number, partial(_nested, encode=_operation)) for method, number in _METHODS.items()
}
_INFO: dict[str, tuple[int, _Write]] = {"title": (1, _text), "version": (2, _text)}
_DOCUMENT: dict[str, tuple[int, _Write]] = {
    "swagger": (1, _text),
    "info": (2, partial(_nested, encode=partial(_message, _INFO))),
    "paths": (8, partial(_nested, encode=partial(_members, 2, partial(_message, _PATH)))),
    "definitions": (9, partial(_nested, encode=_SCHEMAS)),
}
