"""Connections within one process and loop: what one end writes, the other end gets in the next turn of the loop.

Server and clients speak HTTP over them as over sockets. There is nothing to encrypt, and no kernel between them, so
that the loop has always seen everything that was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.tracing import Trace

Accept = Callable[[], asyncio.Protocol]
"""Makes the server's protocol of one more connection."""


class MemoryPipe(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._loop = loop
        self._protocol: asyncio.BaseProtocol = protocol
        self._paused = False
        self._held: list[bytes] = []
        self._closing = False
        self.other: MemoryPipe

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if data and not self._closing:
            self._loop.call_soon(self.other._take, bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._lost)
            self._loop.call_soon(self.other._ended)

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._closing

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Has no effect: nothing is buffered."""

    def can_write_eof(self) -> bool:
        return False

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def is_reading(self) -> bool:
        return not self._paused

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        held, self._held = self._held, []
        for data in held:
            self._loop.call_soon(self._take, data)

    def _take(self, data: bytes) -> None:
        if self._paused or self._held:
            self._held.append(data)
        elif not self._closing:
            assert isinstance(self._protocol, asyncio.Protocol)
            self._protocol.data_received(data)

    def _ended(self) -> None:
        """The other end closed."""
        if not self._closing:
            self._closing = True
            self._lost()

    def _lost(self) -> None:
        self._protocol.connection_lost(None)


def connect(loop: asyncio.AbstractEventLoop, client: asyncio.Protocol, server: asyncio.Protocol) -> None:
    """Connects two protocols."""
    near, far = MemoryPipe(loop, client), MemoryPipe(loop, server)
    near.other, far.other = far, near
    server.connection_made(far)
    client.connection_made(near)


class MemoryConnector(aiohttp.BaseConnector):
    """Connects a session of aiohttp to the one server of this process."""

    def __init__(self, accept: Accept) -> None:
        super().__init__(limit=0, keepalive_timeout=1e9)
        self._accept = accept

    async def _create_connection(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        client: ResponseHandler = self._factory()
        connect(self._loop, client, self._accept())
        return client
