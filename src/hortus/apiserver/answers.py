"""A complete answer as one write to the socket.

aiohttp's Response has headers, cookies and compression that may change until it is sent; here they are known at once,
and building them as bytes costs a third. Streams (watches) are aiohttp's own.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from http import HTTPStatus

from aiohttp import HttpVersion10, web
from aiohttp.helpers import rfc822_formatted_time

from hortus.apiserver.connection import Connection, taken
from hortus.apiserver.http import Reply, status_reply
from hortus.apiserver.http.replies import compressed, warning_headers
from hortus.apiserver.remarks import REMARKS
from hortus.apiserver.resources.names import random_uid
from hortus.kube.errors import TooManyRequests

_COPIED = 64 * 1024
"""Bytes of a body up to which it is joined with its head; a larger one is written by itself."""
_PIECE = 256 * 1024
"""Bytes written at once: TLS encrypts and holds them all until the client takes them."""
_UNREAD = 256 * 1024
"""Unread bytes in the socket of a client that pipelines requests, beyond which the server waits for it."""
_CODES = {code.value: code.phrase for code in HTTPStatus}


class ReplyResponse(web.StreamResponse):
    """`reply` as an answer to `request`; `prepare` and `write_eof` are called by aiohttp once each."""

    def __init__(self, request: web.BaseRequest, reply: Reply, *, compress: bool) -> None:
        # The state of the base class is skipped for speed; aiohttp uses only keep_alive of it.
        self._request = request
        self._keep_alive = request.keep_alive
        body = reply.body
        packed = compressed(reply, request.headers.get("Accept-Encoding", "")) if compress else None
        self._bytes = body if packed is None else packed
        self._head = self._head_of(reply, packed=packed is not None)

    def _head_of(self, reply: Reply, *, packed: bool) -> bytes:
        request = self._request
        said = REMARKS.get()
        audit = (said.audit_id if said is not None else "") or request.headers.get("Audit-Id") or random_uid()
        lines = f"Audit-Id: {audit}\r\nContent-Length: {len(self._bytes)}\r\nDate: {rfc822_formatted_time()}\r\n"
        if packed:
            lines += "Content-Encoding: gzip\r\n"
        if reply.headers:
            lines += "".join([f"{name}: {value}\r\n" for name, value in reply.headers.items()])
        warnings = reply.warnings if said is None else [*reply.warnings, *said.warnings]
        if warnings:
            lines += "".join([f"Warning: {header}\r\n" for header in warning_headers(warnings)])
        first = _first_lines(reply.code, reply.content_type, request.version == HttpVersion10, self._keep_alive)
        return first + lines.encode("utf-8", "surrogateescape") + b"\r\n"

    async def prepare(self, request: web.BaseRequest) -> None:
        pass

    async def write_eof(self, data: bytes = b"") -> None:
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has gone")
        body = self._bytes if self._request.method != "HEAD" else b""
        self._bytes = b""  # aiohttp keeps the last answer of a connection until its next request
        if len(body) > _COPIED:
            await self._write_large(transport, body)
            return
        transport.write(self._head + body)
        if transport.get_write_buffer_size() > _UNREAD:
            await taken(self._request)

    async def _write_large(self, transport: asyncio.Transport, body: bytes) -> None:
        """Counts the bytes as held until the client has taken them; answers 429 when too many are held."""
        connection = self._request.protocol
        assert isinstance(connection, Connection)
        holder, unsent = connection.holder, connection.listener.answers
        try:
            unsent.take(holder, len(body))
        except TooManyRequests as error:
            await ReplyResponse(self._request, status_reply(error), compress=False).write_eof()
            return
        try:
            transport.write(self._head)
            view = memoryview(body)
            for start in range(0, len(body), _PIECE):
                if transport.is_closing():
                    raise ConnectionResetError("the client has gone")
                transport.write(view[start : start + _PIECE])
                await taken(self._request)
        finally:
            unsent.give(holder, len(body))


@lru_cache(maxsize=512)
def _first_lines(code: int, content_type: str, old: bool, keep_alive: bool) -> bytes:
    connection = ""
    if old:
        connection = "Connection: keep-alive\r\n" if keep_alive else ""
    elif not keep_alive:
        connection = "Connection: close\r\n"
    return (
        f"HTTP/1.{0 if old else 1} {code} {_CODES.get(code, '')}\r\n"
        f"Content-Type: {content_type}\r\nCache-Control: no-cache, private\r\n{connection}"
    ).encode()
