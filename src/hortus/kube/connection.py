"""HTTP to one API server: sessions, TLS, credentials, limits, retries, and every failure as one of our errors.

In: a method, a path with its query, perhaps a body, as bytes. Out: status, headers and body as bytes, or a `KubeError`.
`Client` decodes the bytes. HTTP/1.1 over a pool: a slow call never blocks another one, and it costs less CPU than the
HTTP/2 libraries for Python. Watches take connections outside the limit for calls, so that a hundred watches cannot
starve them.

A call is retried after 429 (the server did nothing) and after 5xx with Retry-After; a repeatable call also after any
5xx and a broken connection. Redirects are never followed: they would carry credentials to another host.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Unpack

import aiohttp
import msgspec
import orjson
from multidict import CIMultiDict
from yarl import URL

from hortus.kube.access import Access, Credentials, Impersonation
from hortus.kube.answers import believed, read_body, refusal
from hortus.kube.auth import CredentialSource
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.dialing import Dialer, Dialing
from hortus.kube.errors import (
    ApiError,
    TransportError,
    Unauthorized,
)
from hortus.kube.faults import FOREIGN, mapped
from hortus.kube.fencing import FencedBody
from hortus.kube.metrics import RequestObserver
from hortus.kube.network import current_network
from hortus.kube.pool import SessionPool
from hortus.kube.ratelimit import RateLimiter
from hortus.kube.secret import Secret, without_credential
from hortus.kube.streams import StreamHandler
from hortus.kube.transport import JSON, Absorb, Answer, CallOptions, ConnectionSettings, Reader

_LARGE_BODY = 1 << 20
"""Bytes; aiohttp wants a file-like body from here on."""


class Connection:
    """A pool of connections to one cluster as one user. It is made anywhere, used in one event loop and closed once."""

    def __init__(
        self,
        access: Access,
        *,
        settings: ConnectionSettings | None = None,
        clock: Clock | None = None,
        observer: RequestObserver | None = None,
        limiter: RateLimiter | None = None,
        dialing: Dialing | None = None,
    ) -> None:
        dialing = dialing or Dialing()
        self.settings = settings or ConnectionSettings()
        self.clock: Clock = clock or SystemClock()
        self._aim(access)
        self._observer = observer
        if limiter is None and self.settings.qps > 0:
            limiter = RateLimiter(self.settings.qps, self.settings.burst, clock=self.clock)
        self._limiter = limiter
        self._slots = asyncio.Semaphore(self.settings.connections)
        self._pool = SessionPool(
            access,
            self._auth,
            host=self.host,
            dialer=Dialer(self.settings.deny, make=dialing.make_socket),
            dialing=dialing,
            compression=self.settings.compression,
            user_agent=self.settings.user_agent,
            linger=self.settings.timeout,
            clock=self.clock,
        )
        self._memory = dialing.memory
        self._streams: set[aiohttp.ClientResponse] = set()
        self._timeout = self._timeouts(self.settings.timeout)

    def _aim(self, access: Access) -> None:
        url = URL(access.server)
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError(f"server {access.server!r} is not a http(s) URL with a host")
        self.access = access
        self.host = url.authority.rpartition("@")[2]
        self._base = str(url.origin()) + url.raw_path.rstrip("/")
        self._auth = CredentialSource(access, clock=self.clock)
        self._options: dict[str, object] = {"server_hostname": access.tls_server_name} if access.tls_server_name else {}

    def become(self, access: Access) -> None:
        """Uses `access` from the next call on. Calls in flight keep the old one; watches are ended within `timeout`.

        Raises ValueError for a server that is no URL, and changes nothing then.
        """
        self._aim(access)
        self._pool.become(access, self._auth, host=self.host)

    def authorize(self, token: Secret) -> None:
        """Sends another bearer token of the same user from the next call on; calls and streams in flight go on."""
        self.access = msgspec.structs.replace(self.access, credentials=Credentials(token=token))
        self._auth = CredentialSource(self.access, clock=self.clock)
        self._pool.authorize(self._auth)

    async def close(self) -> None:
        """Closes all connections; calls and streams in flight fail."""
        self.end_streams()
        await self._pool.close()

    def end_streams(self) -> None:
        """Ends every stream that is being read; calls continue."""
        for response in tuple(self._streams):
            # Readers are stopped here, because aiohttp does not wake them when the session is closed next.
            response.content.set_exception(aiohttp.ClientPayloadError())
            _cut(response)

    def close_idle(self) -> int:
        """Closes the idle connections and returns their number. Calls and streams continue."""
        return self._pool.close_idle()

    def cut(self) -> None:
        """Shuts every socket at once, so that buffered bytes are not sent. New calls open new sockets."""
        self._pool.cut()

    async def call(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        repeatable: bool | None = None,
        timeout: float | None = None,
        most: int = 0,
        impersonate: Impersonation | None = None,
    ) -> Answer:
        """Makes one call, retried as the settings allow. `target` is the encoded path and query below the server's URL.

        `repeatable` marks the call as idempotent; default: GET, HEAD and PUT. `timeout` is for each attempt. `most` is
        the number of bytes that the answer may have, where that is less than `settings.max_response`; 0 is no bound of
        its own. `impersonate` makes this call as another user. Raises KubeError; an answer of 400 and above is an
        ApiError, a redirect Garbage.
        """
        if repeatable is None:
            repeatable = method in ("GET", "HEAD", "PUT")
        attempt, renewed = 0, False
        headers = _headers(content_type if body is not None else "", accept, impersonate)
        while True:
            attempt += 1
            try:
                return await self._attempt(method, target, body, headers, timeout, most)
            except (ApiError, TransportError) as error:
                delay = self.settings.retries.delay(error, attempt, repeatable=repeatable)
                if isinstance(error, Unauthorized) and self._auth.renewable and not renewed:
                    await self._auth.refresh(rejected=self._pool.authorization, force=True)
                    delay, renewed = 0.0, True
                if delay is None:
                    raise
            if delay:
                await self.clock.sleep(delay)

    async def _attempt(
        self,
        method: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        timeout: float | None,
        most: int,
    ) -> Answer:
        limiter = self._limiter
        if limiter is not None and (delay := limiter.reserve()) > 0:
            await limiter.wait(delay)
        async with self._slots:
            try:
                response = await self._send(method, target, body, headers, timeout)
                content = await self._body(response, most)
            except FOREIGN as error:
                raise mapped(error, self.host, timeout or self.settings.timeout) from None
        if response.status >= 300:
            raise refusal(response, _redacted(content, response), self.host, now=self.clock.now())
        return Answer(response.status, response.headers, content)

    @contextlib.asynccontextmanager
    async def stream(
        self,
        target: str,
        *,
        accept: str = JSON,
        idle_timeout: float | None = None,
        absorb: Absorb | None = None,
        impersonate: Impersonation | None = None,
    ) -> AsyncIterator[Reader]:
        """Opens a GET whose body is read as it arrives: each call of the reader returns a piece, b"" at the end. Not
        retried.

        `idle_timeout` is the longest silence, in seconds. `absorb` is offered each line that arrives in one piece while
        the reader waits.
        """
        if self._limiter is not None:
            await self._limiter.acquire()
        if current_network() is not None:
            idle_timeout = None  # a server of this process cannot fall silent
        timeout = aiohttp.ClientTimeout(
            total=None, sock_read=idle_timeout, connect=self.settings.connect_timeout, ceil_threshold=1e9
        )
        try:
            response = await self._send("GET", target, None, _headers("", accept, impersonate), timeout)
        except FOREIGN as error:
            raise mapped(error, self.host, idle_timeout or self.settings.timeout) from None
        handler: StreamHandler | None = None
        try:
            if response.status != 200:
                content = _redacted(await self._body(response), response)
                raise refusal(response, content, self.host, now=self.clock.now())
            self._streams.add(response)
            handler = _handler(response)
            if handler is not None:
                handler.absorb = absorb
            yield functools.partial(self._piece, response, handler, idle_timeout)
        except ApiError as error:  # an event that says so, or the answer itself
            _redact(error, response)
            raise
        finally:
            self._streams.discard(response)
            if handler is not None:
                handler.absorb = None
            _cut(response)
            response.close()

    async def _piece(
        self, response: aiohttp.ClientResponse, handler: StreamHandler | None, idle_timeout: float | None
    ) -> bytes:
        try:
            if found := response.content.read_nowait():
                return found
            if handler is not None:
                handler.awaited = True
            return await response.content.readany()
        except FOREIGN as error:
            raise mapped(error, self.host, idle_timeout or self.settings.timeout) from None

    async def _send(
        self,
        method: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        timeout: float | aiohttp.ClientTimeout | None,
    ) -> aiohttp.ClientResponse:
        url = self._base + target
        if (network := current_network()) is not None:
            url = await network.url(self.access, target, stream=isinstance(timeout, aiohttp.ClientTimeout))
        elif self._auth.due():
            await self._auth.refresh()
        session = self._pool.session()
        if timeout is None:
            timeout = self._timeout
        elif not isinstance(timeout, aiohttp.ClientTimeout):
            timeout = self._timeouts(timeout)
        started = self.clock.monotonic()
        code, response = "<error>", None
        try:
            response = await session.request(
                method,
                URL(url, encoded=True),
                data=body if body is None or len(body) < _LARGE_BODY else FencedBody(body),
                headers=headers,
                allow_redirects=False,
                timeout=timeout,
                **self._options,  # type: ignore[arg-type]
            )
            code = str(response.status)
            return response
        finally:
            if self._observer is not None:
                try:
                    self._observer.answered(method, self.host, code, self.clock.monotonic() - started)
                except BaseException:
                    # Nobody gets the response, which would hold its connection until it is collected.
                    if response is not None:
                        response.close()
                    raise

    async def _body(self, response: aiohttp.ClientResponse, most: int = 0) -> bytes:
        return await read_body(response, self.host, self.settings, self._memory, most)

    def _timeouts(self, seconds: float) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=seconds, sock_connect=self.settings.connect_timeout, ceil_threshold=1e9)


class ActingConnection:
    """Another connection's calls, made as another user. It shares that connection, and closing it closes nothing."""

    def __init__(self, shared: Connection, user: Impersonation) -> None:
        self._shared = shared
        self._user = user

    @property
    def access(self) -> Access:
        return msgspec.structs.replace(self._shared.access, impersonate=self._user)

    @property
    def host(self) -> str:
        return self._shared.host

    @property
    def settings(self) -> ConnectionSettings:
        return self._shared.settings

    @property
    def clock(self) -> Clock:
        return self._shared.clock

    async def close(self) -> None:
        """Has no effect: the shared connection is closed by its owner."""

    def become(self, access: Access) -> None:
        raise TypeError(f"calls as {self._user.user} follow the connection that they share: change that one")

    async def call(self, method: str, target: str, body: bytes | None = None, **options: Unpack[CallOptions]) -> Answer:
        return await self._shared.call(method, target, body, impersonate=self._user, **options)

    def stream(
        self, target: str, *, accept: str = JSON, idle_timeout: float | None = None, absorb: Absorb | None = None
    ) -> AbstractAsyncContextManager[Reader]:
        return self._shared.stream(
            target, accept=accept, idle_timeout=idle_timeout, absorb=absorb, impersonate=self._user
        )


def _redacted(content: bytes, response: aiohttp.ClientResponse) -> bytes:
    """The server's words without the credential that this very request carried; the current one may be newer."""
    return without_credential(content, response.request_info.headers.get("Authorization"))


def _redact(error: ApiError, response: aiohttp.ClientResponse) -> None:
    """Takes the credential out of an error that came as an event."""
    try:
        words = orjson.dumps([error.message, error.status_reason, error.details])
    except orjson.JSONEncodeError:  # nested too deeply
        words = b""
    message, reason, details = orjson.loads(_redacted(words, response) or b'["the server reported an error", "", {}]')
    error.say(message)
    error.status_reason, error.details = reason, details
    error.retry_after = believed(error.retry_after)


def _handler(response: aiohttp.ClientResponse) -> StreamHandler | None:
    """The connection of a body that is not complete yet."""
    protocol = response.connection.protocol if response.connection is not None else None
    return protocol if isinstance(protocol, StreamHandler) else None


def _cut(response: aiohttp.ClientResponse) -> None:
    """Aborts instead of closing: a TLS shutdown would wait for the server and keep the socket open meanwhile."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


def _headers(content_type: str, accept: str, impersonate: Impersonation | None) -> Mapping[str, str] | None:
    """The headers that differ from the session's own."""
    headers: CIMultiDict[str] = CIMultiDict(() if impersonate is None else impersonate.headers())
    if accept != JSON:
        headers["Accept"] = accept
    if content_type:
        headers["Content-Type"] = content_type
    return headers or None
