"""Fencing: the last check of a lease before a request leaves.

A process can be stopped between any two steps and continue a minute later, when another process owns its work. A check
before the work begins is therefore not enough. The worker that holds a lease sets a fence in its context, and every
client asks the fence for each attempt, when the connection is open and the bytes are about to be handed to the system.
One turn of the event loop remains between that check and the system call; `Client.cut` covers it.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING

import aiohttp

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.connector import Connection


class Fenced(Exception):
    """The request was not sent: another process owns the work by now.

    Not a `KubeError`: nothing is wrong with the cluster, and code that handles its failures must not handle this one.
    """


Fence = Callable[[], None]
"""Raises `Fenced` when the work of the context it is called in must not act any more."""

_FENCE: ContextVar[Fence | None] = ContextVar("hortus_fence", default=None)


def set_fence(fence: Fence | None) -> None:
    """Sets the fence of this task and of the tasks and timers it makes; called by workers."""
    _FENCE.set(fence)


def joined_fence(fence: Fence) -> Fence:
    """A fence that refuses what `fence` or the present fence of this task refuses."""
    before = _FENCE.get()
    if before is None:
        return fence

    def both() -> None:
        before()
        fence()

    return both


def check_fence() -> None:
    """Raises `Fenced` when the current work must not act any more; costs nothing for work without a fence."""
    fence = _FENCE.get()
    if fence is not None:
        fence()


class FencedBody(io.BytesIO):
    """A long body that asks the fence before each piece, because it is sent over many turns of the loop."""

    stopped: Fenced | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        try:
            check_fence()
        except Fenced as error:
            self.stopped = error
            return b""
        return super().read(size)


class FencedRequest(aiohttp.ClientRequest):
    """A request that asks the fence when it has a connection, in the step that writes its body, and within a long body.

    A server never acts on a body that is shorter than its Content-Length.
    """

    stopped: Fenced | None = None

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        check_fence()
        response = await super().send(conn)
        if self.stopped is not None:
            # From Python 3.12 on the task that writes has begun, and may have ended, within the call above.
            response.close()
            raise self.stopped
        return response

    async def write_bytes(
        self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
    ) -> None:
        # Head and body are written together, in a task of their own, before Python 3.12 one turn of the loop later.
        try:
            check_fence()
        except Fenced as error:
            self._stop(conn, error)
            return
        await super().write_bytes(writer, conn, content_length)
        body = getattr(self.body, "_value", None)
        if isinstance(body, FencedBody) and body.stopped is not None:
            self._stop(conn, body.stopped)

    def _stop(self, conn: Connection, error: Fenced) -> None:
        self.stopped = error
        if conn.protocol is not None:
            conn.protocol.set_exception(error)
        conn.close()


__all__ = ["Fence", "Fenced", "FencedBody", "FencedRequest", "check_fence", "joined_fence", "set_fence"]
