"""HTTP/1.1 for a process that has to stay small: the transport of the API client, and plain requests to this node.

The connections of `hortus.kube` stand on a library that takes a third of the memory the agent may have. This one
implements the same `Transport` with h11 and asyncio's streams: one idle connection for calls, one for each watch, no
proxy and no plug-ins for credentials, which a node does not have.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Unpack
from urllib.parse import urlsplit

import h11
import orjson
from multidict import CIMultiDict, CIMultiDictProxy

from hortus.kube.access import Access
from hortus.kube.clock import Clock
from hortus.kube.errors import (
    ApiError,
    BadAddress,
    ConnectionFailed,
    KubeError,
    RequestTimedOut,
    ResponseTooLarge,
    TlsFailed,
    TransportError,
    from_status,
)
from hortus.kube.retries import retry_after
from hortus.kube.tls import client_context
from hortus.kube.transport import JSON, Absorb, Answer, CallOptions, ConnectionSettings, Reader

_PIECE = 64 << 10
_IDLE = 60.0
"""Seconds after which an idle connection is not used again; API servers keep them for longer."""
_MOST_HEADERS = 64 << 10


class HttpTarget(NamedTuple):
    """The place that a URL names."""

    host: str
    port: int
    base: str
    """The path before that of each request."""
    tls: ssl.SSLContext | None
    server_name: str = ""

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def target_of(url: str, tls: ssl.SSLContext | None, server_name: str = "") -> HttpTarget:
    """The place of a http or https URL. Raises BadAddress."""
    parsed = urlsplit(url)
    try:
        port = parsed.port
    except ValueError:
        raise BadAddress(url, "is no URL: its port is no number") from None
    if parsed.scheme not in ("http", "https") or not parsed.hostname:
        raise BadAddress(url, "is not a http(s) URL with a host")
    secure = parsed.scheme == "https"
    port = port or (443 if secure else 80)
    return HttpTarget(parsed.hostname, port, parsed.path.rstrip("/"), tls if secure else None, server_name)


class _Channel:
    """One connection: a request, its answer, and the next one."""

    def __init__(self, target: HttpTarget, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._target = target
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MOST_HEADERS)
        self.used = False

    @classmethod
    async def open(cls, target: HttpTarget, timeout: float) -> _Channel:
        name = target.server_name or target.host
        try:
            async with asyncio.timeout(timeout):
                streams = await asyncio.open_connection(
                    target.host, target.port, ssl=target.tls, server_hostname=name if target.tls else None
                )
        except ssl.SSLError as error:
            raise TlsFailed(target.authority, f"TLS failed: {error.reason or error}", "compare the CA") from None
        except OSError as error:
            raise ConnectionFailed(target.authority, f"cannot connect: {error.strerror or error}") from None
        except TimeoutError:
            raise RequestTimedOut(target.authority, f"no connection within {timeout:g} s") from None
        return cls(target, *streams)

    async def send(self, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes | None) -> None:
        all_headers = [("Host", self._target.authority), *headers]
        if body is not None:
            all_headers.append(("Content-Length", str(len(body))))
        request = h11.Request(method=method, target=self._target.base + path, headers=all_headers)
        pieces = [self._http.send(request)]
        if body:
            pieces.append(self._http.send(h11.Data(data=body)))
        pieces.append(self._http.send(h11.EndOfMessage()))
        self._writer.write(b"".join(piece for piece in pieces if piece))
        await self._writer.drain()

    async def head(self) -> h11.Response:
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise ConnectionFailed(self._target.authority, "closed the connection before its answer")

    async def piece(self) -> bytes:
        """The next part of the body; b"" at its end."""
        while True:
            event = await self._event()
            if isinstance(event, h11.Data):
                return bytes(event.data)
            if isinstance(event, h11.EndOfMessage):
                return b""
            raise ConnectionFailed(self._target.authority, "closed the connection in the middle of its answer")

    async def _event(self) -> object:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            self._http.receive_data(await self._reader.read(_PIECE))

    def recycle(self) -> bool:
        """Makes the connection ready for another request; returns False where the server ends it."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        self.used = True
        return not self._reader.at_eof()

    def close(self) -> None:
        # TLS would wait for the other side's goodbye.
        self._writer.transport.abort()


@contextlib.contextmanager
def _mapped(host: str, timeout: float) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise RequestTimedOut(host, f"no whole answer within {timeout:g} s") from None
    except ssl.SSLError as error:
        raise TlsFailed(host, f"TLS failed: {error.reason or error}", "compare the client certificate") from None
    except OSError as error:
        raise ConnectionFailed(host, f"the connection broke: {error.strerror or error}") from None
    except (h11.RemoteProtocolError, h11.LocalProtocolError) as error:
        raise ConnectionFailed(host, f"the answer is not HTTP/1.1: {error}") from None


class LeanTransport:
    """Implements `hortus.kube.transport.Transport` for one API server."""

    def __init__(self, access: Access, *, settings: ConnectionSettings, clock: Clock) -> None:
        """Raises BadAddress for a server that is no URL, and ValueError for a certificate that cannot be read."""
        self.settings = settings
        self.clock = clock
        self._idle: tuple[_Channel, float] | None = None
        self._open: set[_Channel] = set()
        self.calls: dict[tuple[str, str], int] = {}
        """Calls by method and status, watches among them: what an agent at rest asks is read here."""
        self.become(access)

    def become(self, access: Access) -> None:
        credentials = access.credentials
        certificate, key = credentials.certificate, credentials.key
        tls = client_context(ca=access.ca, certificate=certificate, key=key, insecure=access.insecure)
        self._target = target_of(access.server, tls, access.tls_server_name)
        self.access = access
        self._drop_idle()

    @property
    def host(self) -> str:
        return self._target.authority

    async def close(self) -> None:
        self._drop_idle()
        for channel in tuple(self._open):
            channel.close()

    def _drop_idle(self) -> None:
        if self._idle is not None:
            self._idle[0].close()
            self._idle = None

    async def call(self, method: str, target: str, body: bytes | None = None, **options: Unpack[CallOptions]) -> Answer:
        repeatable = options.get("repeatable")
        if repeatable is None:
            repeatable = method in ("GET", "HEAD", "PUT")
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._attempt(method, target, body, options)
            except (ApiError, TransportError) as error:
                delay = self.settings.retries.delay(error, attempt, repeatable=repeatable)
                if delay is None:
                    raise
            await self.clock.sleep(delay)

    async def _attempt(self, method: str, target: str, body: bytes | None, options: CallOptions) -> Answer:
        timeout = options.get("timeout") or self.settings.timeout
        accept, content_type = options.get("accept", JSON), options.get("content_type", JSON)
        channel = await self._channel()
        self._open.add(channel)
        try:
            with _mapped(self.host, timeout):
                async with asyncio.timeout(timeout):
                    await channel.send(method, target, self._headers(accept, content_type if body else ""), body)
                    head = await channel.head()
                    content = await self._read(channel, options.get("most") or self.settings.max_response)
            self._count(method, head.status_code)
            if head.status_code >= 300:
                raise self._refusal(head, content, f"{method} {target.partition('?')[0]}")
        except KubeError as error:
            self._release(channel, whole=isinstance(error, ApiError))
            raise
        except BaseException:
            self._release(channel, whole=False)
            raise
        self._release(channel, whole=True)
        return Answer(head.status_code, _headers_of(head), content)

    async def _channel(self) -> _Channel:
        """The idle connection if it is young enough, else another one."""
        if self._idle is not None:
            channel, since = self._idle
            self._idle = None
            if self.clock.monotonic() - since < _IDLE and not channel._reader.at_eof():
                return channel
            channel.close()
        return await _Channel.open(self._target, self.settings.connect_timeout)

    def _release(self, channel: _Channel, *, whole: bool) -> None:
        self._open.discard(channel)
        if whole and self._idle is None and channel.recycle():
            self._idle = (channel, self.clock.monotonic())
        else:
            channel.close()

    async def _read(self, channel: _Channel, bound: int) -> bytes:
        pieces, size = [], 0
        while piece := await channel.piece():
            size += len(piece)
            if size > bound:
                raise ResponseTooLarge(self.host, f"the answer exceeds {bound} bytes", "ask for less at once")
            pieces.append(piece)
        return b"".join(pieces)

    @contextlib.asynccontextmanager
    async def stream(
        self, target: str, *, accept: str = JSON, idle_timeout: float | None = None, absorb: Absorb | None = None
    ) -> AsyncIterator[Reader]:
        """As `Connection.stream`; nothing is offered to `absorb`, since a node has few watches."""
        timeout = idle_timeout or self.settings.timeout
        channel = await _Channel.open(self._target, self.settings.connect_timeout)
        self._open.add(channel)

        async def piece() -> bytes:
            with _mapped(self.host, timeout):
                async with asyncio.timeout(timeout):
                    return await channel.piece()

        try:
            with _mapped(self.host, timeout):
                async with asyncio.timeout(timeout):
                    await channel.send("GET", target, self._headers(accept, ""), None)
                    head = await channel.head()
                    content = b"" if head.status_code == 200 else await self._read(channel, _MOST_HEADERS)
            self._count("WATCH", head.status_code)
            if head.status_code != 200:
                raise self._refusal(head, content, f"GET {target.partition('?')[0]}")
            yield piece
        finally:
            self._open.discard(channel)
            channel.close()

    def _headers(self, accept: str, content_type: str) -> list[tuple[str, str]]:
        headers = [("Accept", accept), ("User-Agent", self.settings.user_agent)]
        if content_type:
            headers.append(("Content-Type", content_type))
        credentials = self.access.credentials
        if credentials.token_file:
            headers.append(("Authorization", f"Bearer {Path(credentials.token_file).read_text().strip()}"))
        elif credentials.token is not None:
            headers.append(("Authorization", f"Bearer {credentials.token.reveal()}"))
        return headers

    def _count(self, method: str, status: int) -> None:
        key = (method, str(status))
        self.calls[key] = self.calls.get(key, 0) + 1

    def _refusal(self, head: h11.Response, content: bytes, what: str) -> KubeError:
        try:
            status = orjson.loads(content)
        except orjson.JSONDecodeError:
            status = None
        if not isinstance(status, dict) or status.get("kind") != "Status":
            message = f"{self.host}: {what} was answered with HTTP status {head.status_code}"
            status = {"kind": "Status", "message": message}
        seconds = retry_after(_headers_of(head), self.clock.now())
        return from_status(head.status_code, status, retry_after=seconds)


def _headers_of(head: h11.Response) -> CIMultiDictProxy[str]:
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers]
    return CIMultiDictProxy(CIMultiDict(pairs))


async def status_of(url: str, *, timeout: float, ca: bytes = b"") -> int:
    """The HTTP status of a GET. Raises TransportError. `ca` is trusted in place of the system's authorities."""
    tls = client_context(ca=ca) if url.startswith("https:") else None
    target = target_of(url, tls)
    with _mapped(target.authority, timeout):
        async with asyncio.timeout(timeout):
            channel = await _Channel.open(target._replace(base=""), timeout)
            try:
                await channel.send("GET", target.base or "/", [("Connection", "close")], None)
                return (await channel.head()).status_code
            finally:
                channel.close()
