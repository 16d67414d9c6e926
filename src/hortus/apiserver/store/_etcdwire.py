"""etcd's v3 API as it is spoken over HTTP/1.1: JSON, keys and values in base64 (etcd.io, "gRPC gateway").

Chosen over gRPC because it needs nothing but the HTTP client we have: the gRPC clients for Python bring a compiled
runtime with threads of its own. The price is base64 and JSON around every value. One watch is one streaming request.
"""

from __future__ import annotations

import asyncio
import base64
import io
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import orjson

from hortus.apiserver.store.backend import StoreFailed

Message = dict[str, Any]
"""One decoded JSON message; numbers of 64 bits are strings in it, and zero values are left out."""

_OUT_OF_RANGE = 11
_CONNECT_SECONDS = 3.0
_CALL_SECONDS = 10.0
"""etcd gives a request up after about 7 s by itself (5 s and two election timeouts)."""


class OutOfRange(Exception):
    """A revision that is compacted or in the future."""


def text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def raw(message: Message, field: str) -> bytes:
    return base64.b64decode(message.get(field, ""))


def number(message: Message, field: str) -> int:
    return int(message.get(field, 0))


def span(prefix: bytes) -> Message:
    """The fields of a request for all keys that begin with `prefix`."""
    return {"key": text(prefix), "range_end": text(_behind(prefix))}


def _behind(prefix: bytes) -> bytes:
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else b"\0"


class EtcdWire:
    """Talks to one member at a time, to the next one when it cannot be reached."""

    def __init__(self, endpoints: Sequence[str], tls: ssl.SSLContext | None) -> None:
        if not endpoints:
            raise ValueError("no etcd endpoint given")
        self.endpoints = [endpoint.rstrip("/") for endpoint in endpoints]
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._stream: aiohttp.ClientResponse | None = None

    async def start(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls or True, keepalive_timeout=60)
        self._session = aiohttp.ClientSession(connector=connector)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(self, path: str, body: Message) -> Message:
        """One request, one answer; raises OutOfRange, StoreFailed.

        It goes to another member only when it surely has not reached this one: a write must not happen twice.
        """
        for _ in self.endpoints:
            try:
                async with asyncio.timeout(_CALL_SECONDS), self._post(path, body) as response:
                    return _checked(response.status, orjson.loads(await response.read()))
            except aiohttp.ClientConnectorError as error:
                failure: Exception = error
                self._try_next()
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                self._try_next()
                raise self._failed(error) from error
        raise self._failed(failure) from failure

    async def watch(self, body: Message) -> AsyncGenerator[Message, None]:
        """The `result` messages of one watch until the connection ends; raises StoreFailed."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
        try:
            async with self._post("/v3/watch", {"create_request": body}, timeout) as response:
                self._stream = response
                rest = b""
                async for piece in response.content.iter_any():
                    *lines, rest = (rest + piece).split(b"\n") if b"\n" in piece else (rest + piece,)
                    for line in lines:
                        yield _checked(response.status, orjson.loads(line)).get("result", {})
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            self._try_next()
            raise self._failed(error) from error
        finally:
            self._stream = None

    def cut(self) -> None:
        """End the watch that is open: nothing comes although something should."""
        if self._stream is not None:
            self._stream.close()

    def _post(
        self, path: str, body: Message, timeout: aiohttp.ClientTimeout | None = None
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        if self._session is None:
            raise StoreFailed("the connection to etcd is closed")
        timeout = timeout or aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
        # A stream, because the client warns of large bodies that are handed over whole.
        return self._session.post(self.endpoints[0] + path, data=io.BytesIO(orjson.dumps(body)), timeout=timeout)

    def _try_next(self) -> None:
        self.endpoints.append(self.endpoints.pop(0))

    def _failed(self, error: Exception) -> StoreFailed:
        cause = str(error) or type(error).__name__
        return StoreFailed(f"etcd at {', '.join(self.endpoints)} does not answer: {cause}; check that it runs")


def _checked(status: int, message: Message) -> Message:
    error = message.get("error")
    if error is None and status == 200:
        return message
    details = error if isinstance(error, dict) else message
    words = str(details.get("message") or error or f"HTTP status {status}")
    if details.get("code", details.get("grpc_code")) == _OUT_OF_RANGE:
        raise OutOfRange(words)
    raise StoreFailed(f"etcd refused: {words}")
