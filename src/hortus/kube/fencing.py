"""The last check before a request leaves: whether the work it belongs to may still act.

A process can be stopped between any two steps and go on a minute later, when its work is long another's. So a check
before the work begins is not enough: whoever runs work under a lease sets a fence in its context, and every client asks
it when the connection is there and the bytes are about to be handed to the system, for each attempt anew. What is left
is one turn of the event loop between that check and the system call; `Client.cut` is for that.
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
    """The request was not sent: the work it belongs to is not this process's any more.

    No `KubeError`: nothing is wrong with the cluster, and what deals with its failures must not deal with this one.
    """


Fence = Callable[[], None]
"""Raises `Fenced` when the work in whose context it is called must not act any more."""

_FENCE: ContextVar[Fence | None] = ContextVar("hortus_fence", default=None)


def set_fence(fence: Fence | None) -> None:
    """For workers: what follows in this task, and in tasks and timers it makes, acts only while `fence` lets it."""
    _FENCE.set(fence)


def check_fence() -> None:
    """Raise `Fenced` when the work running here must not act any more; free for work without a fence."""
    fence = _FENCE.get()
    if fence is not None:
        fence()


class FencedBody(io.BytesIO):
    """A long body that asks the fence before each piece: it is sent over many turns of the loop."""

    stopped: Fenced | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        try:
            check_fence()
        except Fenced as error:
            self.stopped = error
            return b""
        return super().read(size)


class FencedRequest(aiohttp.ClientRequest):
    """A request that asks the fence once it has a connection, in the step that writes its body, and within a long one.

    A server never acts on a body that is shorter than its Content-Length.
    """

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        check_fence()
        return await super().send(conn)

    async def write_bytes(
        self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
    ) -> None:
        # Head and body leave together, in a task of their own: a turn of the loop after `send`.
        try:
            check_fence()
        except Fenced as error:
            _stop(conn, error)
            return
        await super().write_bytes(writer, conn, content_length)
        body = getattr(self.body, "_value", None)
        if isinstance(body, FencedBody) and body.stopped is not None:
            _stop(conn, body.stopped)


def _stop(conn: Connection, error: Fenced) -> None:
    if conn.protocol is not None:
        conn.protocol.set_exception(error)
    conn.close()


__all__ = ["Fence", "Fenced", "FencedBody", "FencedRequest", "check_fence", "set_fence"]
