"""One client connection: aiohttp's low-level protocol with the limits a shared server needs.

A connection without a request in time is dropped, bytes that are no HTTP get a Status, and a stream ends as soon as its
client has gone, so that an idle watch does not outlive its reader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, cast

from aiohttp import StreamReader, web
from aiohttp.http_writer import StreamWriter
from aiohttp.web_protocol import ERROR, RequestHandler, _ErrInfo

from hortus.apiserver.http.replies import status_reply
from hortus.apiserver.limits import Bound, ServerLimits
from hortus.apiserver.tenants import Holder
from hortus.apiserver.turns import Turns
from hortus.kube.errors import ApiError, BadRequest, from_status
from hortus.kube.listeners import LARGE_HEAD, LEAST_TAKEN, LIMITS, LINGERING

_QUIET = 1.0
"""Seconds for which a connection must have been idle before a drain ends it."""
_DRAIN_ROUND = 0.05
"""Seconds between two looks at the connections of a drain."""

_UNTAKEN = 256 * 1024
"""Bytes for the other end of a tunnel from which no more are read from the client."""
_READ_TOO_LATE = RuntimeError("the request is answered, and its body is not kept")

_log = logging.getLogger("hortus.apiserver.connection")


class Connection(RequestHandler):
    """`certificate` is the client's verified certificate in DER, read once; `holder` is the account that the request in
    progress is charged to."""

    __slots__ = (
        "certificate",
        "draining",
        "head",
        "held",
        "holder",
        "listener",
        "opened",
        "refused",
        "stream",
        "timer",
        "tunnel",
    )

    def __init__(self, manager: Listener, *, loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        super().__init__(manager, loop=loop, **options)
        self.listener = manager
        self.opened: asyncio.Transport | None = None
        self.certificate: bytes | None = None
        self.refused: StreamReader | None = None
        self.stream: asyncio.Task[Any] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.tunnel: asyncio.StreamWriter | None = None
        self.draining: asyncio.Task[None] | None = None
        self.holder: Holder = ("", "")
        self.held = 0
        self.head = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # uvloop's transports do not descend from asyncio's classes.
        self.opened = cast(asyncio.Transport, transport)
        self.listener.transports.add(self.opened)
        self.listener.silent[self] = None
        self.timer = self._loop.call_later(self.listener.limits.first_request, self.drop)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if self.opened is not None:
            self.listener.transports.discard(self.opened)
        self.began()
        self.listener.resting.pop(self, None)
        if self.refused is not None:
            self.refused.feed_eof()
        if self.stream is not None:
            self.stream.cancel()

    def data_received(self, data: bytes) -> None:
        if self.tunnel is not None:
            self._passed_on(data, self.tunnel)
            return
        super().data_received(data)
        if self._waiter is not None and not self._messages:
            self.head += len(data)
            if self.head > LIMITS.head_bytes and self.transport is not None:
                self.transport.write(LARGE_HEAD)
                self.force_close()

    def leave_http(self, tunnel: asyncio.StreamWriter) -> None:
        """Hands every further byte to `tunnel`; for a connection that has switched to another protocol."""
        self.tunnel = tunnel
        if self._message_tail:
            tunnel.write(self._message_tail)
            self._message_tail = b""

    def _passed_on(self, data: bytes, tunnel: asyncio.StreamWriter) -> None:
        """Writes to a tunnel, and stops reading while its other end does not take the bytes."""
        tunnel.write(data)
        if tunnel.transport.get_write_buffer_size() > _UNTAKEN and self.draining is None and self.opened is not None:
            self.opened.pause_reading()
            self.draining = self._loop.create_task(self._drained(tunnel))

    async def _drained(self, tunnel: asyncio.StreamWriter) -> None:
        try:
            await tunnel.drain()
            if self.opened is not None and not self.opened.is_closing():
                self.opened.resume_reading()
        except ConnectionError:
            self.drop()
        finally:
            self.draining = None

    def began(self) -> None:
        """Marks the begin of a request."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
            self.listener.silent.pop(self, None)
        else:
            self.listener.resting.pop(self, None)

    def done(self) -> None:
        """Releases everything held for the request; its answer may still have to be sent."""
        if self.held:
            self.listener.bodies.give(self.holder, self.held)
            self.held = 0

    def hold(self, size: int) -> None:
        """Count bytes of the request's body until it is done. Raises TooManyRequests."""
        self.listener.bodies.take(self.holder, size)
        self.held += size

    async def start(self) -> None:
        """Answers the requests of this connection, each in the connection's own task.

        aiohttp starts a task for every request, which costs as much as routing: the task, its context and two more
        rounds of the loop. The next request sees the context of the one before, so `handling` resets it.
        """
        while not self._force_close:
            message, payload = await self._next()
            self.listener.requests_count += 1
            handler = self.listener.request_handler
            if self.listener.draining and not isinstance(message, _ErrInfo):
                message = message._replace(should_close=True)
            if isinstance(message, _ErrInfo):
                handler, message = self._make_error_handler(message), ERROR
            writer = StreamWriter(self, self._loop)
            assert self._task_handler is not None
            request = web.BaseRequest(message, payload, self, writer, self._task_handler, self._loop)
            try:
                response, gone = await self._handle_request(request, None, handler)
            except asyncio.CancelledError:
                self.force_close()
                raise
            except ConnectionError:
                break
            except Exception:
                _log.exception("a request failed")
                self.force_close()
                break
            if gone:
                break
            self._keepalive = bool(response.keep_alive)
            if self.transport is not None:
                self.listener.resting[self] = self._loop.time()
            if not payload.is_eof():
                await self._linger(payload)
            payload.set_exception(_READ_TOO_LATE)
            if not self._keepalive or self._close or self._force_close:
                break
            self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
            if self._keepalive_handle is None:
                self._keepalive_handle = self._loop.call_at(self._next_keepalive_close_time, self._process_keepalive)
            if self._messages:
                await asyncio.sleep(0)  # a client that pipelines requests gives up the loop between them
        if not self._force_close:
            self._task_handler = None
            if self.transport is not None:
                self.transport.close()

    async def _next(self) -> tuple[Any, Any]:
        """Returns the next request as soon as its head has arrived."""
        if not self._messages:
            try:
                self._waiter = self._loop.create_future()
                await self._waiter
            finally:
                self._waiter = None
        self.head = 0
        taken = self._messages.popleft()
        if self._parser is not None:
            self._parser.message_consumed()
        if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
            self._resume_reading_if_drained()
        return taken

    async def _linger(self, payload: StreamReader) -> None:
        """Reads the rest of a refused body for a while, then closes."""
        self.refused = payload
        try:
            async with asyncio.timeout(LINGERING):
                while not payload.is_eof() and not self._force_close:
                    await payload.readany()
        except TimeoutError:
            self.close()
        finally:
            self.refused = None

    def peer_certificate(self) -> bytes:
        if self.certificate is None:
            tls = self.transport.get_extra_info("ssl_object") if self.transport is not None else None
            self.certificate = (tls.getpeercert(binary_form=True) or b"") if tls is not None else b""
        return self.certificate

    def drop(self) -> None:
        """Aborts the connection without a TLS shutdown."""
        if self.opened is not None:
            self.opened.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answers malformed requests and unexpected errors with a Status, and closes."""
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


async def taken(request: web.BaseRequest) -> None:
    """Waits until the client has read most of the sent bytes; drops a client that reads too little for too long.

    Raises ConnectionError.
    """
    connection, transport = request.protocol, request.transport
    assert isinstance(connection, Connection)
    while transport is not None:
        unsent = transport.get_write_buffer_size()
        try:
            async with asyncio.timeout(connection.listener.limits.stalled):
                await request.writer.drain()
            return
        except TimeoutError:
            if transport.get_write_buffer_size() + LEAST_TAKEN > unsent:
                transport.abort()
                raise ConnectionResetError("the client reads too slowly") from None


class Listener(web.Server):
    """aiohttp's low-level server, which makes `Connection`s. `transports` are those that are not lost yet."""

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        limits: ServerLimits,
        turns: Turns | None = None,
    ) -> None:
        super().__init__(
            handler,
            access_log=None,
            keepalive_timeout=limits.idle,
            max_line_size=LIMITS.line,
            max_field_size=LIMITS.line,
            lingering_time=LINGERING,
            auto_decompress=False,
        )
        self.limits = limits
        self.bodies = Bound(limits.bodies)
        self.answers = Bound(limits.answers)
        self.turns = turns or Turns()
        self.transports: set[asyncio.Transport] = set()
        self.silent: dict[Connection, None] = {}
        """Connections without any request, the oldest first."""
        self.resting: dict[Connection, float] = {}
        """Connections between two requests, the longest idle first, with the time since which they are."""
        self.draining = False
        """True if each answer ends its connection."""

    def __call__(self) -> Connection:
        return Connection(self, loop=self._loop, **self._kwargs)

    def drop_oldest(self) -> bool:
        """Drops the connection that has been idle the longest; False when all are busy."""
        for idle in (self.silent, self.resting):
            for connection in idle:
                del idle[connection]
                connection.drop()
                return True
        return False

    async def drain(self, longest: float, end_watches: Callable[[], Awaitable[None]]) -> None:
        """Ends each connection with its next answer, and one that is idle for a second without.

        Returns when none is left, or after `longest` seconds. A client whose connection ends with an answer loses no
        request; one that is idle may send while it is closed (RFC 9112, section 9.3.1), which the second makes rare.
        """
        self.draining = True
        end = self._loop.time() + longest
        while self.transports and self._loop.time() < end:
            await end_watches()  # a client opens its next watch on the connection of the last one
            for connection, since in list(self.resting.items()):
                if connection.transport is not None and self._loop.time() >= since + _QUIET:
                    connection.transport.close()
            await asyncio.sleep(_DRAIN_ROUND)

    async def end(self, grace: float) -> None:
        """Lets requests in progress finish within `grace` seconds, then closes all connections.

        Peers that do not answer the TLS shutdown are not waited for.
        """
        self.pre_shutdown()
        await self.shutdown(grace)
        for transport in list(self.transports):
            transport.abort()
        await asyncio.sleep(0)
