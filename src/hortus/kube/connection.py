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
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol, TypedDict, Unpack

import aiohttp
import msgspec
import orjson
from multidict import CIMultiDictProxy
from yarl import URL

from hortus.kube.access import Access
from hortus.kube.auth import Authenticator
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.dialing import Dialer, Dialing, Memory, Network
from hortus.kube.errors import (
    ApiError,
    Garbage,
    ResponseTooLarge,
    TransportError,
    Unauthorized,
    from_status,
)
from hortus.kube.faults import FOREIGN, mapped
from hortus.kube.fencing import FencedBody
from hortus.kube.metrics import RequestObserver
from hortus.kube.pool import Pool
from hortus.kube.ratelimit import RateLimiter
from hortus.kube.retries import LONGEST_WISH, Retries, retry_after
from hortus.kube.secret import without_credential

_JSON = "application/json"
_GRAIN = 256 << 10
"""Bytes of an answer that are counted at once where memory is shared; shorter answers are not counted."""
_LARGE_BODY = 1 << 20
"""Bytes; aiohttp wants a file-like body from here on."""


class ConnectionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one connection; sizes in bytes, times in seconds."""

    connections: int = 64
    """Calls in flight at once, without watches; more calls wait."""
    qps: float = 0.0
    """Calls a second on average; 0 leaves it to the server's own priority and fairness (429 and Retry-After)."""
    burst: int = 100
    timeout: float = 30.0
    """For one attempt, from the first byte sent to the last byte received."""
    connect_timeout: float = 10.0
    max_response: int = 256 << 20
    max_list: int = 1 << 40
    """For a whole list, all of its pages together."""
    max_event: int = 16 << 20
    """For one line of a watch."""
    bookmark_period: float = 60.0
    """Seconds between two bookmarks of a watch, as kube-apiserver sends them; a watch that is silent for two periods is
    ended."""
    compression: bool = False
    """Ask for gzip: saves network on large lists, costs CPU."""
    retries: Retries = Retries()
    user_agent: str = "hortus"
    deny: tuple[Network, ...] = ()
    """Networks that are never connected to, whatever a name resolves to: `LOCAL_NETWORKS` for untrusted addresses."""


class Answer(NamedTuple):
    """One successful answer."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes


Reader = Callable[[], Awaitable[bytes]]
"""Returns the next piece of a body at each call, b"" at its end."""


class CallOptions(TypedDict, total=False):
    """The options of a call; `Connection.call` describes them."""

    content_type: str
    accept: str
    repeatable: bool | None
    timeout: float | None


class Transport(Protocol):
    """The part of a connection that `Client` and `Watch` use; `Connection` describes each method."""

    @property
    def access(self) -> Access: ...

    @property
    def host(self) -> str: ...

    @property
    def settings(self) -> ConnectionSettings: ...

    @property
    def clock(self) -> Clock: ...

    async def close(self) -> None: ...

    def become(self, access: Access) -> None: ...

    async def call(
        self, method: str, target: str, body: bytes | None = None, **options: Unpack[CallOptions]
    ) -> Answer: ...

    def stream(
        self, target: str, *, accept: str = _JSON, idle_timeout: float | None = None
    ) -> AbstractAsyncContextManager[Reader]: ...


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
        self._pool = Pool(
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
        self._auth = Authenticator(access, clock=self.clock)
        self._options: dict[str, object] = {"server_hostname": access.tls_server_name} if access.tls_server_name else {}

    def become(self, access: Access) -> None:
        """Uses `access` from the next call on. Calls in flight keep the old one; watches are ended within `timeout`.

        Raises ValueError for a server that is no URL, and changes nothing then.
        """
        self._aim(access)
        self._pool.become(access, self._auth, host=self.host)

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
        content_type: str = _JSON,
        accept: str = _JSON,
        repeatable: bool | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """Makes one call, retried as the settings allow. `target` is the encoded path and query below the server's URL.

        `repeatable` marks the call as idempotent; default: GET, HEAD and PUT. `timeout` is for each attempt. Raises
        KubeError; an answer of 400 and above is an ApiError, a redirect Garbage.
        """
        if repeatable is None:
            repeatable = method in ("GET", "HEAD", "PUT")
        attempt, renewed = 0, False
        while True:
            attempt += 1
            try:
                return await self._attempt(method, target, body, content_type, accept, timeout)
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
        self, method: str, target: str, body: bytes | None, content_type: str, accept: str, timeout: float | None
    ) -> Answer:
        limiter = self._limiter
        if limiter is not None and (delay := limiter.reserve()) > 0:
            await limiter.wait(delay)
        async with self._slots:
            try:
                response = await self._send(method, target, body, content_type, accept, timeout)
                content = await self._body(response)
            except FOREIGN as error:
                raise mapped(error, self.host, timeout or self.settings.timeout) from None
        if response.status >= 300:
            raise self._refusal(response, content)
        return Answer(response.status, response.headers, content)

    @contextlib.asynccontextmanager
    async def stream(
        self, target: str, *, accept: str = _JSON, idle_timeout: float | None = None
    ) -> AsyncIterator[Reader]:
        """Opens a GET whose body is read as it arrives: each call of the reader returns a piece, b"" at the end. Not
        retried.

        `idle_timeout` is the longest silence, in seconds.
        """
        if self._limiter is not None:
            await self._limiter.acquire()
        timeout = aiohttp.ClientTimeout(
            total=None, sock_read=idle_timeout, connect=self.settings.connect_timeout, ceil_threshold=1e9
        )
        try:
            response = await self._send("GET", target, None, "", accept, timeout)
        except FOREIGN as error:
            raise mapped(error, self.host, idle_timeout or self.settings.timeout) from None
        try:
            if response.status != 200:
                raise self._refusal(response, await self._body(response))
            self._streams.add(response)
            yield functools.partial(self._piece, response, idle_timeout)
        except ApiError as error:  # an event that says so, or the answer itself
            error.say(self._hidden(error.message.encode("utf-8", "replace")).decode())
            error.retry_after = _believed(error.retry_after)
            raise
        finally:
            self._streams.discard(response)
            _cut(response)
            response.close()

    async def _piece(self, response: aiohttp.ClientResponse, idle_timeout: float | None) -> bytes:
        try:
            return await response.content.readany()
        except FOREIGN as error:
            raise mapped(error, self.host, idle_timeout or self.settings.timeout) from None

    async def _send(
        self,
        method: str,
        target: str,
        body: bytes | None,
        content_type: str,
        accept: str,
        timeout: float | aiohttp.ClientTimeout | None,
    ) -> aiohttp.ClientResponse:
        if self._auth.due():
            await self._auth.refresh()
        session = self._pool.session()
        if timeout is None:
            timeout = self._timeout
        elif not isinstance(timeout, aiohttp.ClientTimeout):
            timeout = self._timeouts(timeout)
        started = self.clock.monotonic()
        code = "<error>"
        try:
            response = await session.request(
                method,
                URL(self._base + target, encoded=True),
                data=body if body is None or len(body) < _LARGE_BODY else FencedBody(body),
                headers=_headers(content_type if body is not None else "", accept),
                allow_redirects=False,
                timeout=timeout,
                **self._options,  # type: ignore[arg-type]
            )
            code = str(response.status)
            return response
        finally:
            if self._observer is not None:
                self._observer.answered(method, self.host, code, self.clock.monotonic() - started)

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """Reads the whole body, which returns the connection to the pool. Any failure on the way closes it."""
        limit = self.settings.max_response
        length = response.content_length
        held = 0
        try:
            if length is not None and not self.settings.compression:
                if length > limit:
                    raise self._too_large(response)
                if self._memory is None or length <= _GRAIN:
                    return await response.read()
            pieces, size = [], 0
            while piece := await response.content.readany():
                size += len(piece)
                if size > limit:
                    raise self._too_large(response)
                if self._memory is not None and size > held + _GRAIN:
                    if not self._memory.take(_GRAIN):
                        raise self._no_room(self._memory)
                    held += _GRAIN
                pieces.append(piece)
            return b"".join(pieces)
        except BaseException:
            response.close()
            raise
        finally:
            if self._memory is not None:
                self._memory.give(held)

    def _no_room(self, memory: Memory) -> ResponseTooLarge:
        problem = f"there is no room for a long answer: those of all clusters together exceed {memory.limit} bytes"
        return ResponseTooLarge(self.host, problem, "ask for fewer objects at once, or later")

    def _too_large(self, response: aiohttp.ClientResponse) -> ResponseTooLarge:
        return ResponseTooLarge(
            self.host,
            f"the answer to {response.method} {response.url.raw_path} exceeds {self.settings.max_response} bytes",
            "ask for fewer objects at once or raise max_response",
        )

    def _refusal(self, response: aiohttp.ClientResponse, content: bytes) -> Exception:
        what = f"{response.method} {response.url.raw_path}"
        if response.status < 400:
            target = URL(response.headers.get("Location", ""), encoded=True).host or "another path"
            return Garbage(
                self.host,
                f"{what} was answered with a redirect ({response.status}) to {target}",
                "set the server URL to the API server itself, not to a proxy or login page",
            )
        try:
            status = orjson.loads(self._hidden(content))
        except orjson.JSONDecodeError:
            status = None
        seconds = retry_after(response.headers, self.clock.now())
        if not isinstance(status, dict) or status.get("kind") != "Status":
            status = {
                "kind": "Status",
                "message": f"{self.host}: {what} was answered with HTTP status {response.status}",
            }
        error = from_status(response.status, status, retry_after=seconds)
        error.retry_after = _believed(error.retry_after)
        return error

    def _hidden(self, content: bytes) -> bytes:
        """The server's message without the credential that it was sent."""
        return without_credential(content, self._auth.authorization)

    def _timeouts(self, seconds: float) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=seconds, sock_connect=self.settings.connect_timeout, ceil_threshold=1e9)


def _believed(wish: float | None) -> float | None:
    return None if wish is None else min(wish, LONGEST_WISH)


def _cut(response: aiohttp.ClientResponse) -> None:
    """Aborts instead of closing: a TLS shutdown would wait for the server and keep the socket open meanwhile."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


def _headers(content_type: str, accept: str) -> dict[str, str] | None:
    """The headers that differ from the session's own."""
    if accept == _JSON:
        return {"Content-Type": content_type} if content_type else None
    return {"Accept": accept, "Content-Type": content_type} if content_type else {"Accept": accept}
