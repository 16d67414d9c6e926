"""etcd's v3 API over HTTP/1.1: JSON, keys and values in base64 (etcd.io, "gRPC gateway").

Preferred to gRPC because it only needs the HTTP client in use: the gRPC clients for Python bring a compiled runtime
with threads of its own. The cost is base64 and JSON around every value. One watch is one streaming request.

**Login.** With a user name, a token is fetched before the first request and again whenever etcd reports it as expired
or older than its roles; etcd's simple tokens expire after 5 minutes (`--auth-token-ttl`). The password is read from its
source each time, so it can be changed while the server runs. The name of a client certificate is no login: etcd ignores
it behind the gateway (etcd.io, "Authentication").
"""

from __future__ import annotations

import asyncio
import base64
import io
import ssl
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

import aiohttp
import orjson

Message = dict[str, Any]
"""One decoded JSON message; 64-bit numbers are strings in it, and zero values are omitted."""

_OUT_OF_RANGE, _UNAUTHENTICATED = 11, 16
_LOGGED_OUT = ("user name is empty", "invalid auth token", "revision of auth store is old")
_LOGIN = "/v3/auth/authenticate"
CONNECTIONS = 64
"""Concurrent calls, without watches: each has a socket, and etcd commits concurrent requests in one batch."""
_CONNECT_SECONDS = 3.0
_CALL_SECONDS = 10.0
"""Seconds; etcd itself ends a request after about 7 s (5 s and two election timeouts)."""


class EtcdLogin(NamedTuple):
    """A user of etcd. `password` is called for each login and its result is not kept."""

    username: str
    password: Callable[[], str]


class EtcdFailed(Exception):
    """etcd cannot be reached, or refused. `code` is that of gRPC for a refusal, `words` its text; else 0 and empty."""

    def __init__(self, message: str, *, code: int = 0, words: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.words = words


class RequestTooLarge(EtcdFailed):
    """The request is larger than etcd takes."""


class _LoggedOut(Exception):
    """etcd requires a new token."""


class OutOfRange(Exception):
    """The revision is compacted or in the future."""


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
    """A client of one member at a time, and of the next one when that is unreachable."""

    def __init__(
        self, endpoints: Sequence[str], tls: ssl.SSLContext | None = None, login: EtcdLogin | None = None
    ) -> None:
        if not endpoints:
            raise ValueError("no etcd endpoint given")
        self.endpoints = [endpoint.rstrip("/") for endpoint in endpoints]
        self._tls = tls
        self._login = login
        self._token = ""
        self._logging_in = asyncio.Lock()
        self._places = asyncio.Semaphore(CONNECTIONS)
        self._session: aiohttp.ClientSession | None = None
        self._stream: aiohttp.ClientResponse | None = None

    async def start(self) -> None:
        # Without a limit of its own: `_places` bounds calls, and the watch must not wait for them.
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls or True, keepalive_timeout=60)
        self._session = aiohttp.ClientSession(connector=connector)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(self, path: str, body: Message) -> Message:
        """One request, one answer; raises OutOfRange, EtcdFailed.

        It is sent to another member only when it has certainly not reached this one: a write must not happen twice.
        """
        if self._login is None:
            try:
                return await self._call(path, body)
            except _LoggedOut as refusal:
                raise EtcdFailed(f"etcd refused: {refusal}; it wants a user name and password") from None
        for _ in range(2):
            token = self._token or await self._log_in("")
            try:
                return await self._call(path, body)
            except _LoggedOut as refusal:
                failure = refusal
                await self._log_in(token)
        raise EtcdFailed(f"etcd refused: {failure}")

    async def _log_in(self, expired: str) -> str:
        """A token other than `expired`; one request for all who need it. Raises EtcdFailed."""
        assert self._login is not None, "asked of those who log in"
        async with self._logging_in:
            if self._token == expired:
                self._token = ""
                try:
                    password = self._login.password()
                except OSError as error:
                    raise EtcdFailed(f"the password for etcd cannot be read: {error}") from None
                answer = await self._call(_LOGIN, {"name": self._login.username, "password": password})
                self._token = str(answer["token"])
            return self._token

    async def _call(self, path: str, body: Message) -> Message:
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                await self._places.acquire()
        except TimeoutError as error:
            raise self._failed(TimeoutError(f"{CONNECTIONS} calls hang")) from error
        try:
            return await self._ask(path, body)
        finally:
            self._places.release()

    async def _ask(self, path: str, body: Message) -> Message:
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
        """The `result` messages of one watch until the connection ends, which is always a EtcdFailed.

        etcd ends no watch by itself, so its reader is to pause before the next one.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
        if self._login is not None and not self._token:
            await self._log_in("")
        token = self._token
        try:
            async with self._post("/v3/watch", {"create_request": body}, timeout) as response:
                self._stream = response
                rest = b""
                async for piece in response.content.iter_any():
                    *lines, rest = (rest + piece).split(b"\n") if b"\n" in piece else (rest + piece,)
                    for line in lines:
                        yield _refused_not(_checked(response.status, orjson.loads(line)).get("result", {}))
                # The gateway's own errors have no line end.
                _checked(response.status, orjson.loads(rest or b"{}"))
                raise EtcdFailed("etcd ended the watch with its connection")
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            self._try_next()
            raise self._failed(error) from error
        except _LoggedOut as refusal:
            if self._login is not None:
                await self._log_in(token)
            raise EtcdFailed(f"etcd refused: {refusal}") from None
        finally:
            self._stream = None

    def cut(self) -> None:
        """Ends the open watch, which is silent although events are due."""
        if self._stream is not None:
            self._stream.close()

    def _post(
        self, path: str, body: Message, timeout: aiohttp.ClientTimeout | None = None
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        if self._session is None:
            raise EtcdFailed("the connection to etcd is closed")
        timeout = timeout or aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
        # A stream, because the client warns of large bodies in one piece.
        headers = {"Authorization": self._token} if self._token and path != _LOGIN else None
        data = io.BytesIO(orjson.dumps(body))
        return self._session.post(self.endpoints[0] + path, data=data, timeout=timeout, headers=headers)

    def _try_next(self) -> None:
        self.endpoints.append(self.endpoints.pop(0))

    def _failed(self, error: Exception) -> EtcdFailed:
        cause = str(error) or type(error).__name__
        return EtcdFailed(f"etcd at {', '.join(self.endpoints)} does not answer: {cause}; check that it runs")


def _checked(status: int, message: Message) -> Message:
    error = message.get("error")
    if error is None and status == 200:
        return message
    details = error if isinstance(error, dict) else message
    words = str(details.get("message") or error or f"HTTP status {status}")
    code = int(details.get("code", details.get("grpc_code")) or 0)
    if code == _OUT_OF_RANGE:
        raise OutOfRange(words)
    if code == _UNAUTHENTICATED or any(each in words for each in _LOGGED_OUT):
        raise _LoggedOut(words)
    if "request is too large" in words or "message larger than max" in words:
        raise RequestTooLarge(f"etcd refused: {words}; it takes 1.5 MiB unless --max-request-bytes says otherwise")
    raise EtcdFailed(f"etcd refused: {words}", code=code, words=words)


def _refused_not(message: Message) -> Message:
    """A watch's message; raises for a refusal, which etcd sends within the stream."""
    reason = str(message.get("cancel_reason", ""))
    if any(each in reason for each in _LOGGED_OUT):
        raise _LoggedOut(reason)
    if "permission denied" in reason:
        raise EtcdFailed(f"etcd refused: {reason}")
    return message
