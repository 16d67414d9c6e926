"""New connections: accepted while there is room, and then in place of the connections that have been idle the longest.

A listening socket that stops accepting when it is full serves no new client until its attackers stop. So room is made:
first handshakes in progress are dropped, then connections without any request, then idle ones. Busy connections stay.
Source: RFC 7230 section 6.5 (a server may close an idle connection at any time).
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
from functools import partial

from hortus.apiserver.connection import Listener
from hortus.kube.listeners import ACCEPTED_AT_ONCE, ACCEPTS_AGAIN_AFTER, OUT_OF_FILES, TLS_FAREWELL_WITHIN

_OTHER_FILES = 64
"""File descriptors that are left for everything but connections: the store, logs, webhooks, threads' pipes."""

_log = logging.getLogger("hortus.apiserver.accepting")


def connections_within(limit: int) -> int:
    """`limit`, or the number of files that the process may open (RLIMIT_NOFILE, half of a small one) if that is
    less."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return limit
    possible = max(files - _OTHER_FILES, files // 2, 1)
    if possible < limit:
        _log.warning(
            "fewer connections than configured: the process may not open as many files",
            extra={"connections": possible, "configured": limit, "nofile": files},
        )
    return min(limit, possible)


class Acceptor:
    """Accepts connections of `listening` and hands them to `listener` after the TLS handshake."""

    def __init__(self, listening: socket.socket, tls: ssl.SSLContext, listener: Listener, most: int) -> None:
        """Accepts `most` connections at once."""
        self._socket = listening
        self._tls = tls
        self._listener = listener
        self._most = most
        self._greeting: dict[asyncio.Task[None], None] = {}
        self._loop = asyncio.get_running_loop()
        self._later: asyncio.TimerHandle | None = None

    def open(self) -> None:
        self._later = None
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._accept)

    async def close(self) -> None:
        """Accepts no more; handshakes in progress are dropped."""
        if self._later is not None:
            self._later.cancel()
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._socket.close()
        for task in self._greeting:
            task.cancel()
        await asyncio.gather(*self._greeting, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                peer, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_FILES:
                    raise
                self._wait_for_files(error)
                return
            if len(self._greeting) + len(self._listener.transports) >= self._most and not self._make_room():
                peer.close()
                continue
            task = self._loop.create_task(self._greet(peer))
            self._greeting[task] = None
            task.add_done_callback(partial(self._greeted, peer))

    def _greeted(self, peer: socket.socket, task: asyncio.Task[None]) -> None:
        del self._greeting[task]
        if task.cancelled():
            peer.close()  # a task that was cancelled before it began has not closed it

    def _wait_for_files(self, error: OSError) -> None:
        _log.warning("no more connections can be accepted", extra={"error": str(error)})
        self._make_room()
        self._loop.remove_reader(self._socket)
        self._later = self._loop.call_later(ACCEPTS_AGAIN_AFTER, self.open)

    def _make_room(self) -> bool:
        for task in self._greeting:
            if not task.cancelling():
                task.cancel()
                return True
        return self._listener.drop_oldest()

    async def _greet(self, peer: socket.socket) -> None:
        try:
            peer.setblocking(False)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(
                self._listener,
                peer,
                ssl=self._tls,
                ssl_handshake_timeout=self._listener.limits.tls_hello,
                ssl_shutdown_timeout=TLS_FAREWELL_WITHIN,
            )
        except OSError:
            # No TLS, no valid certificate, gone, or too slow: the TLS alert or the closed connection is the answer.
            peer.close()
