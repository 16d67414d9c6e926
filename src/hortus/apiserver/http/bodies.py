"""Request bodies: read within a limit of size and time, decoded within a limit of depth, JSON or YAML.

orjson reads bodies, as it refuses NaN, infinities, lone surrogates and invalid UTF-8 by itself; it keeps the last of
duplicate keys silently, so duplicates are looked for apart, and only when a cheap count says there may be some.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from typing import Any

import orjson
from aiohttp import web

from hortus.apiserver.remarks import REMARKS
from hortus.kube import yaml
from hortus.kube.errors import ApiError, BadRequest, RequestEntityTooLarge, Timeout, UnsupportedMediaType
from hortus.kube.objects import Object

LARGEST_BODY = 3 * 1024 * 1024
"""Bytes; what kube-apiserver accepts (3 MiB)."""
DEEPEST = 200
"""Levels of objects and lists within each other; deeper bodies are refused before anything recurses into them."""
SLOWEST_BODY = 60.0
"""Seconds a client may take to send one body."""

_JSON = frozenset({"", "application/json", "*/*"})
_YAML = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})


async def read_body(request: web.BaseRequest) -> bytes:
    """All bytes of the body. Raises RequestEntityTooLarge, Timeout, BadRequest (cut off in the middle)."""
    body = await _read(request)
    said = REMARKS.get()
    if said is not None:
        said.body = body
    return body


async def _read(request: web.BaseRequest) -> bytes:
    stream = request.content
    if stream.is_eof() and not stream.total_bytes:
        return b""
    length = request.headers.get("Content-Length", "")
    if length.isdigit() and int(length) > LARGEST_BODY:
        raise _too_large()
    first = stream.read_nowait() if stream.is_eof() else b""
    if stream.at_eof():
        if len(first) > LARGEST_BODY:
            raise _too_large()
        return first
    return await _read_rest(stream, first)


async def _read_rest(stream: Any, first: bytes) -> bytes:
    chunks, size = [first], len(first)
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            while not stream.at_eof():
                chunk = await stream.readany()
                size += len(chunk)
                if size > LARGEST_BODY:
                    raise _too_large()
                chunks.append(chunk)
    except TimeoutError:
        raise Timeout(f"the request body was not complete within {SLOWEST_BODY:.0f}s") from None
    except (web.HTTPException, zlib.error, ValueError) as error:
        raise BadRequest(f"the request body cannot be read: {error}") from None
    return b"".join(chunks)


def _too_large() -> ApiError:
    return RequestEntityTooLarge(f"Request entity too large: limit is {LARGEST_BODY}")


def media_type_of(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def decode_object(body: bytes, content_type: str, kind: str) -> Object:
    """The object in a body of JSON or YAML. Raises BadRequest, UnsupportedMediaType; `kind` is for the message."""
    value = decode_value(body, content_type, kind)
    if not isinstance(value, dict):
        raise _unrecognized(kind, f"a {_json_type(value)} was sent where an object is expected")
    return value


def decode_value(body: bytes, content_type: str, kind: str) -> Any:
    media = media_type_of(content_type)
    if media in _JSON:
        return _decode_json(body, kind)
    if media in _YAML:
        return _decode_yaml(body, kind)
    raise UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def _decode_json(body: bytes, kind: str) -> Any:
    if body.count(b"{") + body.count(b"[") > DEEPEST:
        _check_depth(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _unrecognized(kind, f"json parse error: {error}") from None


def _decode_yaml(body: bytes, kind: str) -> Any:
    if body[:1] == b"{":
        # JSON is YAML too, and what most clients send as such.
        try:
            return _decode_json(body, kind)
        except BadRequest:
            pass
    try:
        value = yaml.load(body)
    except ValueError as error:
        raise _unrecognized(kind, f"yaml parse error: {error}") from None
    # Dates, sets and odd keys exist in YAML only: one trip through JSON proves there are none.
    try:
        return _decode_json(orjson.dumps(value), kind)
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise _unrecognized(kind, f"yaml holds what JSON cannot: {error}") from None


def _unrecognized(kind: str, why: str) -> BadRequest:
    return BadRequest(f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; {why}")


def _json_type(value: object) -> str:
    names = {list: "list", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), "value")


def _check_depth(body: bytes) -> None:
    """Refuse deep nesting without recursion; brackets within strings do not count."""
    depth, inside, skip = 0, False, False
    for byte in body:
        if inside:
            if skip:
                skip = False
            elif byte == 0x5C:
                skip = True
            elif byte == 0x22:
                inside = False
        elif byte == 0x22:
            inside = True
        elif byte in b"{[":
            depth += 1
            if depth > DEEPEST:
                raise BadRequest(f"the object provided is nested more than {DEEPEST} levels deep")
        elif byte in b"}]":
            depth -= 1


def duplicate_fields(body: bytes, decoded: Any) -> list[str]:
    """Paths of keys that stand twice in one object of a JSON `body`, as strict decoding names them (`spec.x`).

    Written compactly again, a body without duplicates has as many keys as before; only when the counts differ is it
    read a second time, slowly.
    """
    if body.count(b'":') + body.count(b'" :') == orjson.dumps(decoded).count(b'":'):
        return []
    try:
        return _duplicates_in(json.loads(body, object_pairs_hook=_Pairs), "")
    except (ValueError, RecursionError):
        return []


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its keys as written."""


def _duplicates_in(value: Any, path: str) -> list[str]:
    found: list[str] = []
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, inner in value:
            where = f"{path}.{key}" if path else key
            if key in seen:
                found.append(where)
            seen.add(key)
            found += _duplicates_in(inner, where)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += _duplicates_in(inner, f"{path}[{index}]")
    return found
