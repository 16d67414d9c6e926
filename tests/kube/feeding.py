"""A watch over a connection of aiohttp without a socket: a test puts the bytes in."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from hortus.kube.access import Access
from hortus.kube.clock import SystemClock
from hortus.kube.connection import Connection
from hortus.kube.streams import StreamHandler
from hortus.kube.transport import JSON, Absorb, Answer, ConnectionSettings, Reader

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def bookmark(version: str) -> bytes:
    return b'{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"%s"}}}\n' % version.encode()


class FedTransport:
    """Serves one stream, of which `handler` receives the bytes."""

    host = "fed"
    clock = SystemClock()

    def __init__(
        self, settings: ConnectionSettings | None = None, *, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.access = Access(server="https://fed")
        self.settings = settings or ConnectionSettings()
        self.handler = StreamHandler(loop or asyncio.get_running_loop())
        self.handler.connection_made(cast(Any, asyncio.Transport()))
        self.handler.set_response_params(read_timeout=120.0, timeout_ceil_threshold=1e9)
        self._piece = functools.partial(Connection._piece, cast(Any, self))

    async def close(self) -> None:
        self.handler.connection_lost(None)

    def become(self, access: Access) -> None:
        raise NotImplementedError

    async def call(self, method: str, target: str, body: bytes | None = None, **options: Any) -> Answer:
        raise NotImplementedError

    @asynccontextmanager
    async def stream(
        self, target: str, *, accept: str = JSON, idle_timeout: float | None = None, absorb: Absorb | None = None
    ) -> AsyncIterator[Reader]:
        self.handler.data_received(HEAD)
        _, content = await self.handler.read()
        self.handler.absorb = absorb
        try:
            yield functools.partial(self._piece, cast(Any, SimpleNamespace(content=content)), self.handler, 120.0)
        finally:
            self.handler.absorb = None
