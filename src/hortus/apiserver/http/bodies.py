"""Request bodies: read within a limit of size and time, decoded within a limit of depth, JSON or YAML.

orjson reads bodies, because it refuses NaN, infinities, lone surrogates and invalid UTF-8; it silently keeps the last
of duplicate keys, so duplicates are searched separately, and only when a cheap count indicates some.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol, cast

import orjson
from aiohttp import web

from hortus.apiserver.limits import ServerLimits
from hortus.apiserver.remarks import REMARKS
from hortus.apiserver.tenants import Holder, tenant_of
from hortus.apiserver.turns import Turns
from hortus.kube import yaml
from hortus.kube.errors import ApiError, BadRequest, RequestEntityTooLarge, Timeout, UnsupportedMediaType
from hortus.kube.numbers import stored
from hortus.kube.objects import Object

LARGEST_BODY = 3 * 1024 * 1024
"""Bytes; the limit of kube-apiserver (3 MiB)."""
DEEPEST = 200
"""Levels of objects and lists within each other; deeper bodies are refused before anything recurses into them."""
_COUNTED = 16 * 1024
"""Bytes from which a body counts against the limit on all bodies; smaller ones are bounded by number."""
_LARGE = 64 * 1024
"""Bytes from which a body waits for its turn: parsing it takes more than a millisecond of processor time."""
_SHOWN = 30
"""Bytes of a body that are shown when it cannot be read."""
_UNREADABLE = "couldn't get version/kind; json parse error: "
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_JSON = frozenset({"", "application/json", "*/*"})
_YAML = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})
_APPLY = "application/apply-patch+yaml"


class Sender(Protocol):
    """The part of a connection that reading a body needs."""

    @property
    def listener(self) -> Listening: ...

    @property
    def holder(self) -> Holder: ...

    def hold(self, size: int) -> None:
        """Count bytes until the request is done. Raises TooManyRequests."""


class Listening(Protocol):
    @property
    def limits(self) -> ServerLimits: ...

    @property
    def turns(self) -> Turns: ...


async def read_body(request: web.BaseRequest) -> bytes:
    """All bytes of the body; large YAML is returned as JSON.

    Raises RequestEntityTooLarge, Timeout, TooManyRequests, UnsupportedMediaType (it is compressed), BadRequest (the
    body is incomplete).
    """
    body = await _read(request)
    said = REMARKS.get()
    if said is not None:
        said.body = body
    if len(body) < _LARGE:
        return body
    sender = cast(Sender, request.protocol)
    turns, tenant = sender.listener.turns, tenant_of(*sender.holder)
    if body[:1] != b"{" and media_type_of(request.headers.get("Content-Type", "")) in _YAML | {_APPLY}:
        body = await turns.aside(tenant, partial(_as_json, body))
    await turns.wait(tenant)
    return body


async def _read(request: web.BaseRequest) -> bytes:
    stream = request.content
    if stream.is_eof() and not stream.total_bytes:
        return b""
    headers = request.headers
    length = headers.get("Content-Length", "")
    if length.isdigit() and int(length) > LARGEST_BODY:
        raise _too_large()
    if headers.get("Content-Encoding", "identity").lower() != "identity":
        raise UnsupportedMediaType("bodies of requests may not be compressed")
    connection = cast(Sender, request.protocol)
    if stream.is_eof():
        first = stream.read_nowait()
        if stream.at_eof():
            if len(first) > _COUNTED:
                connection.hold(len(first))
            if len(first) > LARGEST_BODY:
                raise _too_large()
            return first
    else:
        first = b""
        if headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(_CONTINUE)
    return await _read_rest(stream, first, connection)


async def _read_rest(stream: Any, first: bytes, connection: Sender) -> bytes:
    chunks, size, limit = [first], len(first), connection.listener.limits.body
    try:
        async with asyncio.timeout(limit):
            while not stream.at_eof():
                chunk = await stream.readany()
                size += len(chunk)
                if size > LARGEST_BODY:
                    raise _too_large()
                connection.hold(len(chunk))
                chunks.append(chunk)
    except TimeoutError:
        raise Timeout(f"the request body was not complete within {limit:.0f}s") from None
    except (web.HTTPException, ValueError) as error:
        raise BadRequest(f"the request body cannot be read: {error}") from None
    return b"".join(chunks)


def _as_json(body: bytes) -> bytes:
    """Large YAML as JSON, in a thread: libyaml reads a megabyte a second. Raises BadRequest."""
    try:
        return orjson.dumps(yaml.load(body))
    except (ValueError, TypeError, RecursionError) as error:
        raise BadRequest(f"the object provided is unrecognized: couldn't get version/kind; {error}") from None


def _too_large() -> ApiError:
    return RequestEntityTooLarge(f"Request entity too large: limit is {LARGEST_BODY}")


def media_type_of(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def decode_object(body: bytes, content_type: str, kind: str) -> Object:
    """The object in a body of JSON or YAML. Raises BadRequest, UnsupportedMediaType; `kind` is for the message."""
    value = decode_value(body, content_type, kind)
    if value is None:
        return {}
    for problem in head_problems(value):
        raise BadRequest(f"the object provided is unrecognized (must be of type {kind}): {problem} ({quoted(body)})")
    found: Object = value
    return found


_HEAD = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def head_problems(value: Any) -> Iterator[str]:
    """The reasons why apiVersion and kind cannot be read from a decoded body, in Go's words."""
    if not isinstance(value, dict):
        yield f"{_UNREADABLE}json: cannot unmarshal {go_kind(value)} into Go value of type {_HEAD}"
        return
    for field in ("apiVersion", "kind"):
        given = value.get(field)
        if not isinstance(given, str | None):
            yield f"{_UNREADABLE}json: cannot unmarshal {go_kind(given)} into Go struct field .{field} of type string"
            return
    version = value.get("apiVersion")
    if version and version.count("/") > 1:
        yield f"unexpected GroupVersion string: {version}"


def kindless(body: bytes, kind: str) -> BadRequest:
    """The refusal of a body without a kind, where one is required."""
    why = f"Object 'Kind' is missing in '{body.decode(errors='replace')}'"
    return BadRequest(f"the object provided is unrecognized (must be of type {kind}): {why} ({quoted(body)})")


def go_kind(value: object) -> str:
    """The name that Go's JSON package has for a value of this type."""
    names = {list: "array", str: "string", bool: "bool", int: "number", float: "number", dict: "object"}
    return names.get(type(value), "null")


def quoted(body: bytes) -> str:
    """The beginning of a body as errors of Go's decoder show it: as text where it may be JSON."""
    start = body[:_SHOWN]
    text = start.decode(errors="replace") if body.lstrip()[:1] == b"{" else start.hex()
    return f"{text} ..." if len(body) > _SHOWN else text


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
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _unrecognized(kind, f"json parse error: {_go_syntax(error)} ({quoted(body)})") from None
    _check_depth(body, found)
    return found


def decode_patch(body: bytes, prefix: str) -> Any:
    """The JSON of a patch. Raises BadRequest, whose message begins with `prefix`."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"{prefix}{_go_syntax(error)}") from None
    _check_depth(body, found)
    return found


def _decode_yaml(body: bytes, kind: str) -> Any:
    if body[:1] == b"{":
        # JSON is YAML too, and most clients send it as such.
        try:
            return with_whole_numbers(_decode_json(body, kind))
        except BadRequest:
            pass
    try:
        value = yaml.load(body)
    except ValueError as error:
        raise _unrecognized(kind, f"yaml parse error: {error}") from None
    # Dates, sets and non-text keys exist only in YAML: a round trip through JSON proves that there are none.
    try:
        return with_whole_numbers(_decode_json(orjson.dumps(value), kind))
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise _unrecognized(kind, f"yaml holds what JSON cannot: {error}") from None


def _go_syntax(error: orjson.JSONDecodeError) -> str:
    """The error in Go's words for the most frequent case, a body that ends too early."""
    text = str(error)
    if text.startswith(("unexpected end of data", "Input is a zero-length, empty document")):
        return "unexpected end of JSON input"
    return text


def _unrecognized(kind: str, why: str) -> BadRequest:
    return BadRequest(f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; {why}")


def _check_depth(body: bytes, value: Any) -> None:
    """Refuses deep nesting without recursion; orjson itself stops at 1,024 levels."""
    if body.count(b"{") + body.count(b"[") <= DEEPEST:
        return
    level = [value]
    for _ in range(DEEPEST):
        level = [
            part
            for whole in level
            for part in (whole.values() if type(whole) is dict else whole)
            if type(part) is dict or type(part) is list
        ]
        if not level:
            return
    raise BadRequest(f"the object provided is nested more than {DEEPEST} levels deep")


def duplicate_fields(body: bytes, decoded: Any) -> list[str]:
    """Paths of duplicate keys in one object of a JSON `body`, as strict decoding names them (`spec.x`).

    A body without duplicates has the same number of keys after compact encoding; only when the counts differ is it
    parsed a second time, slowly.
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


def with_whole_numbers(value: Any) -> Any:
    """`value` with its whole floats of 64 bits as integers, as Go's JSON writes them; containers are changed in place.

    In Go, custom resources and YAML pass through untyped values, which are written as JSON: `2.0` becomes `2`. A typed
    integer field of a built-in kind refuses `2.0`, so JSON for those is not changed.
    """
    kind = type(value)
    if kind is dict:
        for key, part in value.items():
            inner = type(part)
            if inner is dict or inner is list or inner is float:
                value[key] = with_whole_numbers(part)
    elif kind is list:
        for place, part in enumerate(value):
            inner = type(part)
            if inner is dict or inner is list or inner is float:
                value[place] = with_whole_numbers(part)
    elif kind is float:
        return stored(value)
    return value
