"""Requests that leave HTTP: after `101 Switching Protocols` bytes pass both ways until one end has closed.

Such are exec, attach and port-forward over SPDY or WebSockets. The server behind is asked over a connection of its own;
an answer that is no switch is handed on where it is an error (k8s.io/apimachinery, pkg/util/proxy/upgradeaware.go).
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from aiohttp import web
from multidict import CIMultiDict

from hortus.apiserver.aggregation.resolving import RemoteAddress
from hortus.apiserver.aggregation.servers import RemoteServer, Unreachable, dial_problem
from hortus.apiserver.connection import Connection, taken
from hortus.kube.listeners import TLS_FAREWELL_WITHIN

_SECONDS = 10.0
"""Seconds for the connection, and again for the answer."""
_LARGEST_HEAD = 64 * 1024
_LARGEST_ERROR = 1024 * 1024
"""Bytes of an answer that is no switch."""
_PIECE = 64 * 1024
_SWITCHED: Final = 101
_ROUNDS: Final = 10
"""Rounds of the loop in which a connection that was cut is closed."""


def is_upgrade(request: web.BaseRequest) -> bool:
    """Reports whether the client asks for another protocol on its connection."""
    words = ",".join(request.headers.getall("Connection", ())).lower().split(",")
    return "upgrade" in (word.strip() for word in words) and bool(request.headers.get("Upgrade"))


class PassedAnswer(web.StreamResponse):
    """An answer whose bytes have been written already."""

    def __init__(self, status: int, *, keep_alive: bool) -> None:
        super().__init__(status=status)
        self._keep_alive = keep_alive

    async def prepare(self, request: web.BaseRequest) -> None:
        pass

    async def write_eof(self, data: bytes = b"") -> None:
        pass


class Tunnels:
    """The connections that are no longer HTTP."""

    def __init__(self) -> None:
        self._open: set[asyncio.StreamWriter] = set()

    def end(self) -> None:
        for writer in self._open:
            writer.close()

    async def stop(self) -> None:
        """Cuts the connections that are still open, and returns when they are gone."""
        for writer in self._open:
            writer.transport.abort()
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)

    async def open(
        self,
        request: web.BaseRequest,
        server: RemoteServer,
        address: RemoteAddress,
        target: str,
        headers: CIMultiDict[str],
    ) -> web.StreamResponse:
        """Asks the server behind and passes bytes until the end. Raises Unreachable, ConnectionError."""
        reader, writer = await _connected(server, address)
        self._open.add(writer)
        try:
            writer.write(_head(request, address, target, headers))
            async with asyncio.timeout(_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            status = _status(head)
            if status != _SWITCHED and status < 400:
                raise Unreachable(f"invalid upgrade response: status code {status}")
            transport = request.transport
            if transport is None or transport.is_closing():
                raise ConnectionResetError("the client has gone")
            transport.write(head)
            if status != _SWITCHED:
                await _rest(reader, transport, _length(head))
            else:
                await _both_ways(request, reader, writer)
            return PassedAnswer(status, keep_alive=False)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            raise Unreachable("malformed HTTP response") from None
        except TimeoutError:
            raise Unreachable("context deadline exceeded") from None
        finally:
            try:
                await _closed(writer)
            finally:
                self._open.discard(writer)


async def _connected(server: RemoteServer, address: RemoteAddress) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    tls, name = server.tls
    try:
        async with asyncio.timeout(_SECONDS):
            connected = await server.dial(address)
            return await asyncio.open_connection(sock=connected, ssl=tls, server_hostname=name, limit=_LARGEST_HEAD)
    except OSError as error:
        raise Unreachable(dial_problem(error, address)) from None


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Closes the connection to the server behind, after the bytes that are on their way."""
    writer.close()
    try:
        async with asyncio.timeout(TLS_FAREWELL_WITHIN):
            await writer.wait_closed()
    except (TimeoutError, OSError):
        writer.transport.abort()
    except BaseException:
        writer.transport.abort()
        raise


def _head(request: web.BaseRequest, address: RemoteAddress, target: str, headers: CIMultiDict[str]) -> bytes:
    host = address.origin.removeprefix("https://")
    lines = [f"{request.method} {target} HTTP/1.1", f"Host: {host}", "Connection: Upgrade"]
    lines += [f"Upgrade: {value}" for value in request.headers.getall("Upgrade")]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def _status(head: bytes) -> int:
    words = head.split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1][:3].isdigit():
        raise Unreachable("malformed HTTP response")
    return int(words[1][:3])


def _length(head: bytes) -> int:
    """The length of the body that follows; the most that is handed on where the head does not say it."""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return min(int(value), _LARGEST_ERROR)
    return _LARGEST_ERROR


async def _rest(reader: asyncio.StreamReader, transport: asyncio.Transport, length: int) -> None:
    """Hands on the body of an error; the connection ends with it."""
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(_SECONDS):
            while length > 0 and (piece := await reader.read(min(length, _PIECE))):
                transport.write(piece)
                length -= len(piece)


async def _both_ways(request: web.BaseRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    connection, transport = request.protocol, request.transport
    assert isinstance(connection, Connection) and transport is not None
    connection.leave_http(writer)
    with contextlib.suppress(OSError):
        while (piece := await reader.read(_PIECE)) and not transport.is_closing():
            transport.write(piece)
            if transport.get_write_buffer_size() >= _PIECE:
                await taken(request)
