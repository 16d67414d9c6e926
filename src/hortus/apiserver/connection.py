"""One client connection: aiohttp's low-level protocol with the limits a shared server needs.

A connection that sends no request in time is dropped, what is no HTTP gets a Status, and a stream is told at once when
its client has gone, so that an idle watch does not outlive its reader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from hortus.apiserver.http.replies import status_reply
from hortus.kube.errors import ApiError, BadRequest, from_status

FIRST_REQUEST_WITHIN = 30.0
"""Seconds between the end of the TLS handshake and the first complete request head."""
TLS_HELLO_WITHIN, TLS_FAREWELL_WITHIN = 10.0, 1.0
"""Seconds for the handshake, and for a peer's answer to our farewell: many clients send none."""
IDLE_FOR = 300.0
"""Seconds a connection may rest between two requests."""
LONGEST_HEADER_LINE = 16 * 1024
"""Bytes of one header line or of the request line; a service account token is about 1 KiB."""

_log = logging.getLogger("hortus.apiserver.connection")


class Connection(RequestHandler):
    """`certificate` is the client's verified certificate in DER, asked for once."""

    __slots__ = ("certificate", "listener", "opened", "stream", "timer")

    def __init__(self, manager: Listener, *, loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        super().__init__(manager, loop=loop, **options)
        self.listener = manager
        self.opened: asyncio.Transport | None = None
        self.certificate: bytes | None = None
        self.stream: asyncio.Task[Any] | None = None
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # uvloop's transports do not descend from asyncio's classes.
        self.opened = cast(asyncio.Transport, transport)
        self.listener.transports.add(self.opened)
        self.timer = self._loop.call_later(FIRST_REQUEST_WITHIN, self._drop_silent)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if self.opened is not None:
            self.listener.transports.discard(self.opened)
        self.began()
        if self.stream is not None:
            self.stream.cancel()

    def began(self) -> None:
        """The first request is here."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def peer_certificate(self) -> bytes:
        if self.certificate is None:
            tls = self.transport.get_extra_info("ssl_object") if self.transport is not None else None
            self.certificate = (tls.getpeercert(binary_form=True) or b"") if tls is not None else b""
        return self.certificate

    def _drop_silent(self) -> None:
        self.timer = None
        if self.transport is not None:
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answers what never became a request (and what went wrong unforeseen) with a Status, and closes."""
        error: ApiError
        if status < HTTPStatus.INTERNAL_SERVER_ERROR:
            error = BadRequest("the request is not valid HTTP", code=status)
        else:
            _log.error("a request failed", exc_info=exc)
            error = from_status(status, None)
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun already")
        reply = status_reply(error)
        response = web.Response(body=reply.body, status=reply.code, content_type=reply.content_type)
        response.force_close()
        return response


class Listener(web.Server):
    """aiohttp's low-level server, making our connections. `transports` are all that are not lost yet."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], **options: Any) -> None:
        super().__init__(handler, **options)
        self.transports: set[asyncio.Transport] = set()

    def __call__(self) -> Connection:
        return Connection(self, loop=self._loop, **self._kwargs)

    async def end(self, grace: float) -> None:
        """Let requests in progress finish within `grace` seconds, then close all connections.

        Peers that do not answer TLS's farewell are not waited for.
        """
        self.pre_shutdown()
        await self.shutdown(grace)
        for transport in list(self.transports):
            transport.abort()
        await asyncio.sleep(0)
