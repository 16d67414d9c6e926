"""Answers of API servers: bodies read within limits, error answers, and the objects and lists in JSON.

An answer is untrusted: its length, its form and the names in it are checked before a caller gets it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import orjson
from yarl import URL

from hortus.kube.dialing import Memory
from hortus.kube.errors import ApiError, Garbage, ResponseTooLarge, from_status
from hortus.kube.objects import Object, Resource, is_object, shaped
from hortus.kube.retries import LONGEST_WISH, retry_after
from hortus.kube.transport import Answer, ConnectionSettings

if TYPE_CHECKING:
    # Programs with a transport of their own do without the library.
    import aiohttp

_GRAIN = 256 << 10
"""Bytes of an answer that are counted at once where memory is shared; shorter answers are not counted."""


Decode = Callable[[bytes], object]
"""Decodes JSON. Raises orjson.JSONDecodeError."""


class ObjectList(NamedTuple):
    """Objects of one kind, and the version from which a watch carries on."""

    items: list[Object]
    resource_version: str
    remaining: int = 0
    """The number of further objects that the server reports; 0 for a whole list."""
    restarted: bool = False
    """The list expired between two pages and began again: all pages handed out before are void."""


class _ListMeta(msgspec.Struct, rename="camel"):
    continuation: str | None = msgspec.field(default=None, name="continue")
    resource_version: str | None = None
    remaining_item_count: int | None = None


async def read_body(
    response: aiohttp.ClientResponse, host: str, settings: ConnectionSettings, memory: Memory | None, most: int = 0
) -> bytes:
    """Reads the whole body, which returns the connection to the pool. Any failure on the way closes it. `most` bounds
    it further than the settings do, unless it is 0."""
    length = response.content_length
    bound = min(most or settings.max_response, settings.max_response)
    try:
        if length is not None and not settings.compression:
            if length > bound:
                raise _too_large(response, host, bound)
            if memory is None or length <= _GRAIN:
                return await response.read()
        return await _read_counted(response, host, bound, memory)
    except BaseException:
        response.close()
        raise


async def _read_counted(response: aiohttp.ClientResponse, host: str, bound: int, memory: Memory | None) -> bytes:
    pieces, size, held = [], 0, 0
    try:
        while piece := await response.content.readany():
            size += len(piece)
            if size > bound:
                raise _too_large(response, host, bound)
            if memory is not None and size > held + _GRAIN:
                if not memory.take(_GRAIN):
                    raise _no_room(host, memory)
                held += _GRAIN
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        if memory is not None:
            memory.give(held)


def _no_room(host: str, memory: Memory) -> ResponseTooLarge:
    problem = f"there is no room for a long answer: those of all clusters together exceed {memory.limit} bytes"
    return ResponseTooLarge(host, problem, "ask for fewer objects at once, or later")


def _too_large(response: aiohttp.ClientResponse, host: str, bound: int) -> ResponseTooLarge:
    return ResponseTooLarge(
        host,
        f"the answer to {response.method} {response.url.raw_path} exceeds {bound} bytes",
        "ask for fewer objects at once or raise max_response",
    )


def refusal(response: aiohttp.ClientResponse, content: bytes, host: str, *, now: float) -> ApiError | Garbage:
    """The error of an answer of 300 and above; `content` must not hold the credential of the request any more."""
    what = f"{response.method} {response.url.raw_path}"
    if response.status < 400:
        target = URL(response.headers.get("Location", ""), encoded=True).host or "another path"
        return Garbage(
            host,
            f"{what} was answered with a redirect ({response.status}) to {target}",
            "set the server URL to the API server itself, not to a proxy or login page",
        )
    try:
        status = orjson.loads(content)
    except orjson.JSONDecodeError:
        status = None
    seconds = retry_after(response.headers, now)
    if not isinstance(status, dict) or status.get("kind") != "Status":
        status = {"kind": "Status", "message": f"{host}: {what} was answered with HTTP status {response.status}"}
    error = from_status(response.status, status, retry_after=seconds)
    error.retry_after = believed(error.retry_after)
    return error


def believed(wish: float | None) -> float | None:
    """A server's Retry-After in seconds, capped."""
    return None if wish is None else min(wish, LONGEST_WISH)


def decoded(answer: Answer, host: str, decode: Decode = orjson.loads) -> Object:
    """The JSON object in an answer. Raises Garbage."""
    try:
        obj = decode(answer.body)
    except orjson.JSONDecodeError:
        kind = answer.headers.get("Content-Type", "no content type")
        raise _garbage(host, f"answered {answer.status} with something other than JSON ({kind[:80]})") from None
    if not isinstance(obj, dict):
        raise _garbage(host, "answered with JSON that is not an object")
    return obj


def check_identity(obj: Object, name: str, namespace: str, host: str) -> None:
    """Raises Garbage for an object that is not the requested one."""
    if not is_object(obj) or obj["metadata"]["name"] != name:
        raise _garbage(host, f"was asked for {name!r} and answered with another object")
    if namespace and obj["metadata"].get("namespace") != namespace:
        problem = f"was asked for {name!r} in namespace {namespace!r} and answered with that of another one"
        raise _garbage(host, problem)


def decoded_page(
    answer: Answer, resource: Resource, host: str, *, restarted: bool, decode: Decode = orjson.loads
) -> tuple[ObjectList, str]:
    """One page of a list, and the token of the next one. Raises Garbage."""
    body = decoded(answer, host, decode)
    items, metadata = body.get("items") or [], shaped(body.get("metadata"), _ListMeta)
    if not isinstance(items, list) or metadata is None:
        raise _garbage(host, f"was asked for a list of {resource.plural} and answered with something else")
    if not all(map(is_object, items)):
        raise _garbage(host, f"was asked for a list of {resource.plural} and answered with what are no objects")
    if items and "kind" not in items[0]:
        api_version, kind = resource.api_version, resource.kind
        items = [{"apiVersion": api_version, "kind": kind, **found} for found in items]
    page = ObjectList(items, metadata.resource_version or "", metadata.remaining_item_count or 0, restarted)
    return page, metadata.continuation or ""


def _garbage(host: str, problem: str) -> Garbage:
    return Garbage(host, problem, "check that the server URL is that of a Kubernetes API server")
