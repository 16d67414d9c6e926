"""Virtual time: an event loop whose clock jumps to the next timer as soon as nothing is left to do.

Everything that waits on this loop waits in virtual time: clocks, `asyncio.sleep`, timeouts, the server's watches. Days
pass in the seconds that their work takes. The order of all steps follows from the steps before: work for threads is
done at once, on the loop, and answers of the real world (`outside`) are waited for together, while time stands still,
and arrive in the order in which they were asked for.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import errno
import selectors
import socket
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from aiohttp.client_proto import ResponseHandler

from hortus.kube.clock import Timer
from hortus.kube.network import Network

T = TypeVar("T")

_OWN_FILES = 1
"""Files that the loop itself watches: the pipe by which threads wake it."""
_UNANSWERED, _ANSWERED = 10.0, 0.02
"""Seconds of the machine for which time waits for a server or program outside: after something was sent there or a part
of an answer came, and after the last piece of an answer."""
_PROGRAMS = -1
"""In place of the file of a server."""
_ROUNDS = range(5, 500)
"""Looks at the ends of programs: so many at least, for their transports, and at most, where the machine is busy."""


class _Selector(selectors.DefaultSelector):
    """Lets time jump where the loop would sleep."""

    loop: VirtualLoop

    def __init__(self) -> None:
        super().__init__()
        self.until: dict[int, float] = {}
        """The machine's time until which an answer may come, by the file of a server; the programs share one entry."""
        self._servers: dict[int, socket.socket] = {}
        """Their transports say what has come: TLS sends more than answers."""

    def add_server(self, sock: socket.socket) -> int:
        """The file of a connection to a server, for `expect`."""
        self._servers[sock.fileno()] = sock
        return sock.fileno()

    def expect(self, seconds: float, server: int = _PROGRAMS) -> None:
        """An answer may come within so many seconds of the machine."""
        self.until[server] = time.monotonic() + seconds

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        if not self._is_server(key.fd):
            self.expect(_UNANSWERED)
        return key

    def _is_server(self, file: int) -> bool:
        """False for a program that has got the file of a closed connection."""
        sock = self._servers.get(file)
        return sock is not None and sock.fileno() == file

    def _heard(self, found: list[tuple[selectors.SelectorKey, int]]) -> None:
        if any(key.fileobj is not self.loop.own_pipe and not self._is_server(key.fd) for key, _ in found):
            self.expect(_ANSWERED)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0):
            self._heard(found)
            return found
        if self.loop.deliver():
            return []
        patience = max(self.until.values(), default=0.0) - time.monotonic()
        if patience > 0 and len(self.get_map()) > _OWN_FILES:
            found = super().select(patience)
            self._heard(found)
            if found:
                return found
        if timeout is None:  # nothing is due, ever: only a thread or a signal can go on
            return super().select(None)
        self.loop.jump(timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on virtual time, which begins at 0. `network` is where its clients go (`hortus.kube.network`)."""

    def __init__(self) -> None:
        self._virtual = 0.0
        self._outside: list[tuple[concurrent.futures.Future[Any], asyncio.Future[Any]]] = []
        self.is_blocked = False
        """True while it waits for answers outside and runs no task."""
        self._is_ending = False
        self.jumps = 0
        """The number of times that nothing was left to do."""
        self._programs: list[asyncio.SubprocessTransport] = []
        self.network: Network | None = None
        self.offline = False
        """True refuses connections to servers of the real world; set by `go_offline`."""
        self._sockets: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()
        """The connections to such servers."""
        self._waits = _Selector()
        self._waits.loop = self
        super().__init__(self._waits)
        self._waits.until.clear()

    @property
    def own_pipe(self) -> object:
        """The file by which threads wake the loop."""
        return getattr(self, "_ssock", None)

    def _make_socket_transport(self, *args: Any, **options: Any) -> Any:
        return self._connected(args[0], args[1], super()._make_socket_transport(*args, **options))  # type: ignore[misc]

    def _make_ssl_transport(self, *args: Any, **options: Any) -> Any:
        return self._connected(args[0], args[1], super()._make_ssl_transport(*args, **options))  # type: ignore[misc]

    def _make_write_pipe_transport(self, *args: Any, **options: Any) -> Any:
        return self._followed(super()._make_write_pipe_transport(*args, **options))  # type: ignore[misc]

    async def subprocess_exec(self, *args: Any, **options: Any) -> Any:
        transport, protocol = await super().subprocess_exec(*args, **options)
        self._programs.append(transport)
        return transport, protocol

    async def drain(self) -> None:
        """Ends the programs that were started and are still open, and waits until they are gone."""
        self._is_ending = True  # who was to answer may be gone
        programs, self._programs = self._programs, []
        for program in programs:
            program.close()
        for number in range(_ROUNDS.stop):
            if number >= _ROUNDS.start and all(program.get_returncode() is not None for program in programs):
                break
            self._waits.expect(_ANSWERED)
            await asyncio.sleep(_ANSWERED)

    def _connected(self, sock: socket.socket, protocol: Any, transport: Any) -> Any:
        """The transport of a connection to a server, followed until the server has answered or hung up."""
        server, received, lost = self._waits.add_server(sock), protocol.data_received, protocol.connection_lost

        def heard(data: bytes) -> None:
            received(data)
            body = protocol._payload if isinstance(protocol, ResponseHandler) else None
            self._waits.expect(_ANSWERED if body is None or body.is_eof() else _UNANSWERED, server)

        def ended(error: Exception | None) -> None:
            self._waits.expect(_ANSWERED, server)
            lost(error)

        protocol.data_received, protocol.connection_lost = heard, ended
        self._sockets.add(transport)
        self._waits.expect(_UNANSWERED, server)  # for a TLS handshake
        return self._followed(transport, server)

    def _followed(self, transport: Any, server: int = _PROGRAMS) -> Any:
        """The transport of a socket or pipe to the outside; what is written there may be answered."""
        write = transport.write

        def written(data: bytes) -> None:
            self._waits.expect(_UNANSWERED, server)
            write(data)

        transport.write = written
        return transport

    def time(self) -> float:
        return self._virtual

    def go_offline(self) -> None:
        """Refuses connections to servers of the real world from now on, and breaks those that are open."""
        self.offline = True
        for transport in [*self._sockets]:
            transport.abort()

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        if self.offline:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "the plan reads nothing outside of the fleet")
        server = self._waits.add_server(sock)
        self._waits.expect(_UNANSWERED, server)
        try:
            await super().sock_connect(sock, address)
        finally:
            self._waits.expect(_ANSWERED, server)

    def jump(self, seconds: float) -> None:
        """Lets `seconds` pass at once."""
        self._virtual += seconds
        self.jumps += 1

    def run_in_executor(  # type: ignore[override]
        self, executor: concurrent.futures.Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """The result of `func`, called here and now: a thread would end at a moment that nothing determines."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def outside(self, answer: concurrent.futures.Future[T]) -> asyncio.Future[T]:
        """The answer of another thread, for which time stands still."""
        waiting: asyncio.Future[T] = self.create_future()
        self._outside.append((answer, waiting))
        return waiting

    def deliver(self) -> bool:
        """Waits for all answers that were asked for and hands them over, in order; False when there are none."""
        if not self._outside or self._is_ending:
            return False
        asked, self._outside = self._outside, []
        self.is_blocked = True
        try:
            concurrent.futures.wait([answer for answer, waiting in asked if not waiting.done()])
        finally:
            self.is_blocked = False
        for answer, waiting in asked:
            if waiting.done():
                continue
            with suppress(asyncio.InvalidStateError):
                error = answer.exception()
                if error is not None:
                    waiting.set_exception(error)
                else:
                    waiting.set_result(answer.result())
        return True


class VirtualClock:
    """The `Clock` of a virtual loop; its wall time began at `began`, in seconds since the Unix epoch."""

    def __init__(self, loop: VirtualLoop, *, began: float) -> None:
        self._loop = loop
        self.began = began

    def now(self) -> float:
        return self.began + self._loop.time()

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return self._loop.call_later(seconds, callback)
