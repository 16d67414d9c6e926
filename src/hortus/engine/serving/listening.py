"""One listening address of a process: each of its HTTP servers on aiohttp but the API server's listens through it.

It accepts connections itself, so that each has a place from the first byte of its handshake on, and drops those that
take too long or that others need the place of (`hortus.kube.listeners`). A request in progress is never dropped.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

import structlog
from aiohttp import StreamReader, web
from aiohttp.web_protocol import RequestHandler

from hortus.kube.listeners import (
    ACCEPTED_AT_ONCE,
    ACCEPTS_AGAIN_AFTER,
    LARGE_HEAD,
    LEAST_TAKEN,
    LIMITS,
    LINGERING,
    OUT_OF_FILES,
    TLS_FAREWELL_WITHIN,
    ConnectionPhase,
    ConnectionPlace,
    ConnectionPlaces,
    ListenerLimits,
    sender_of,
)

if TYPE_CHECKING:
    from hortus.engine.health import Address

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

CANNOT_LISTEN: Final = "cannot listen on"
"""Start of the error for an address that cannot be listened on."""
LONGEST_PATH: Final = 100
"""Characters of a socket's path; systems differ between 104 and 108."""
_BACKLOG: Final = 1024
_SHARE: Final = 4
"""One listener takes this part of the files that the process may open at most."""

Serving = web.Application | Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""The routes of a server, or the one handler of all its requests."""


class HttpListener:
    """Serves at one address, or at a Unix socket that its owner alone may open."""

    def __init__(
        self,
        place: Address | Path,
        serving: Serving,
        *,
        tls: ssl.SSLContext | None = None,
        limits: ListenerLimits = LIMITS,
        grace: float = 1.0,
    ) -> None:
        """`grace` are the seconds in which requests in progress may end when it stops."""
        self._at = place
        self._serving = serving
        self._tls = tls
        self._grace = grace
        self.limits = limits
        self.places = ConnectionPlaces(_connections_within(limits.connections), limits.bodies)
        self.port = 0
        """The port that it listens on; 0 before, and of a Unix socket."""
        self.open: set[_Connection] = set()
        self._socket: socket.socket | None = None
        self._runner: web.BaseRunner | None = None
        self._greeting: set[asyncio.Task[None]] = set()
        self._later: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen. Raises OSError that names the address when it is taken."""
        self._loop = asyncio.get_running_loop()
        self._socket = _bound(self._at)
        if isinstance(self._serving, web.Application):
            self._runner = web.AppRunner(self._serving, access_log=None, shutdown_timeout=self._grace)
        else:
            server = web.Server(self._serving, access_log=None)
            self._runner = web.ServerRunner(server, shutdown_timeout=self._grace)
        try:
            await self._runner.setup()
        except BaseException:
            self._close()
            raise
        if not isinstance(self._at, Path):
            self.port = int(self._socket.getsockname()[1])
        self._accept_again()

    async def stop(self) -> None:
        """Accept no more, let requests in progress end, and close all connections."""
        self._close()
        for task in list(self._greeting):
            task.cancel()
        await asyncio.gather(*self._greeting, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        for connection in list(self.open):
            connection.drop()  # a client that does not return the farewell of TLS holds no connection open
        await asyncio.sleep(0)

    def _close(self) -> None:
        if self._later is not None:
            self._later.cancel()
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
            if isinstance(self._at, Path):
                self._at.unlink(missing_ok=True)

    def _accept_again(self) -> None:
        self._later = None
        assert self._socket is not None
        self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        assert self._socket is not None
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                peer, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_FILES:
                    raise
                self._wait_for_files(self._socket, error)
                return
            self._admit(peer, sender_of(address))

    def _wait_for_files(self, listening: socket.socket, error: OSError) -> None:
        _log.warning("no more connections can be accepted", address=str(self._at), error=str(error))
        self.places.make_room()
        self._loop.remove_reader(listening)
        self._later = self._loop.call_later(ACCEPTS_AGAIN_AFTER, self._accept_again)

    def _admit(self, peer: socket.socket, sender: str) -> None:
        place = self.places.take(sender, peer.close)
        if place is None:
            peer.close()
            return
        task = self._loop.create_task(self._greet(peer, place))
        place.drop = task.cancel
        self._greeting.add(task)

        def greeted(task: asyncio.Task[None]) -> None:
            self._greeting.discard(task)
            if place.phase is ConnectionPhase.HELLO:
                self.places.leave(place)
                peer.close()

        task.add_done_callback(greeted)

    async def _greet(self, peer: socket.socket, place: ConnectionPlace) -> None:
        peer.setblocking(False)
        timeouts = {}
        if self._tls is not None:
            timeouts = {"ssl_handshake_timeout": self.limits.tls_hello, "ssl_shutdown_timeout": TLS_FAREWELL_WITHIN}
        try:
            await self._loop.connect_accepted_socket(lambda: self._connection(place), peer, ssl=self._tls, **timeouts)
        except OSError as error:
            _log.debug("a connection has no handshake", address=str(self._at), sender=place.sender, error=str(error))

    def _connection(self, place: ConnectionPlace) -> _Connection:
        assert self._runner is not None
        return _Connection(self, self._runner.server, place, self._loop)


class _Connection(RequestHandler):
    """aiohttp's protocol of one connection, with a deadline for each step."""

    __slots__ = ("_body", "_head", "_listener", "_opened", "_place", "_stall", "_timer", "_unsent")

    def __init__(
        self, listener: HttpListener, server: Any, place: ConnectionPlace, loop: asyncio.AbstractEventLoop
    ) -> None:
        limits = listener.limits
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # as aiohttp's runners pass it
            max_line_size=limits.line,
            max_field_size=limits.line,
            lingering_time=LINGERING,
            auto_decompress=False,
        )
        self._listener = listener
        self._place = place
        self._opened: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._body: StreamReader | None = None
        self._head = self._unsent = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # uvloop's transports do not descend from asyncio's classes.
        self._opened = cast(asyncio.Transport, transport)
        self._place.drop = self.drop
        self._listener.open.add(self)
        self._step(ConnectionPhase.HEAD, self._listener.limits.head, self.drop)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        for timer in (self._timer, self._stall):
            if timer is not None:
                timer.cancel()
        self._listener.places.leave(self._place)
        self._listener.open.discard(self)

    def drop(self) -> None:
        """Abort the connection without a TLS shutdown."""
        if self._opened is not None:
            self._opened.abort()

    def data_received(self, data: bytes) -> None:
        if self._place.phase is ConnectionPhase.BODY and not self._listener.places.hold(self._place, len(data)):
            text = "too many bytes are held for requests\n"
            self._refuse(web.HTTPTooManyRequests(text=text, headers={"Retry-After": "1"}))
        super().data_received(data)
        if self._waiter is not None and not self._messages:
            self._head += len(data)
            if self._head > self._listener.limits.head_bytes and self.transport is not None:
                self.transport.write(LARGE_HEAD)
                self.force_close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()

    async def _handle_request(
        self,
        request: web.BaseRequest,
        start_time: float | None,
        request_handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
    ) -> tuple[web.StreamResponse, bool]:
        self._begin(request.content)
        try:
            return await super()._handle_request(request, start_time, request_handler)
        finally:
            self._body = None
            self._head = 0
            self._step(ConnectionPhase.IDLE, self._listener.limits.idle, self.drop)

    def _begin(self, body: StreamReader) -> None:
        if body.is_eof():
            self._step(ConnectionPhase.WORK)
            return
        limit = self._listener.limits.body
        late = web.HTTPRequestTimeout(text=f"the body was not complete within {limit:g}s\n")
        self._body = body
        self._step(ConnectionPhase.BODY, limit, lambda: self._refuse(late))
        body.on_eof(self._complete)

    def _complete(self) -> None:
        if self._place.phase is ConnectionPhase.BODY:
            self._step(ConnectionPhase.WORK)

    def _step(self, phase: ConnectionPhase, within: float = 0.0, late: Callable[[], None] | None = None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        is_open = self.transport is not None
        self._timer = self._loop.call_later(within, late) if late is not None and is_open else None
        self._listener.places.move(self._place, phase)

    def _refuse(self, refusal: web.HTTPException) -> None:
        """Has the handler read `refusal` in place of the rest of the body, and ends the connection with its answer."""
        if self._body is not None:
            self._body.set_exception(refusal)
            self._body = None
            self._lingering_time = 0.0
            self.close()

    def _watch_reader(self) -> None:
        assert self._opened is not None
        self._unsent = self._opened.get_write_buffer_size()
        self._stall = self._loop.call_later(self._listener.limits.stalled, self._stalled)

    def _stalled(self) -> None:
        assert self._opened is not None
        if self._opened.get_write_buffer_size() + LEAST_TAKEN > self._unsent:
            self.drop()
        else:
            self._watch_reader()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answers what is no HTTP without a line in the log, which anybody could fill."""
        if status >= 500:
            return super().handle_error(request, status, exc, message)
        response = web.Response(status=status, text="the request is not valid HTTP\n")
        response.force_close()
        return response


def _connections_within(most: int) -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if files == resource.RLIM_INFINITY else min(most, max(files // _SHARE, 2))


def _bound(place: Address | Path) -> socket.socket:
    """A listening socket. Raises OSError that names the address."""
    try:
        bound = _unix(place) if isinstance(place, Path) else _tcp(place)
    except OSError as error:
        # The texts of Python repeat the address as a tuple.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise OSError(error.errno, f"{CANNOT_LISTEN} {place}: {reason}; choose another address") from error
    bound.setblocking(False)
    return bound


def _tcp(address: Address) -> socket.socket:
    if not address.host:
        dual = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        return socket.create_server(("", address.port), family=family, backlog=_BACKLOG, dualstack_ipv6=dual)
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, *_, where = min(found, key=lambda one: one[0])  # IPv4 before IPv6, as clients of `localhost` try it
    return socket.create_server(where, family=family, backlog=_BACKLOG)


def _unix(path: Path) -> socket.socket:
    # A process that was killed leaves a file that no longer accepts connections but still occupies the name.
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(path))
        os.chmod(path, 0o600)  # noqa: PTH101 - before it listens, so that nobody else connects
        bound.listen(_BACKLOG)
    except BaseException:
        bound.close()
        raise
    return bound
