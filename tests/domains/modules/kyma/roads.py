"""The network between a control plane and a cluster, for tests: a relay that can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

from hortus.kube.objects import Object

HOUR = 3600.0


class Road:
    """Relays connections to a server as they are, TLS included, until it is cut."""

    def __init__(self, target: str) -> None:
        """`target` is host:port."""
        self._host, _, self._port = target.rpartition(":")
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.StreamWriter] = set()
        self.address = ""

    async def begin(self) -> None:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.address = f"{host}:{port}"

    def cut(self) -> None:
        """Connections break, and no other is accepted."""
        if self._server is not None:
            self._server.close()
        for writer in self._open:
            writer.transport.abort()
        for task in self._tasks:
            task.cancel()

    async def end(self) -> None:
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._host, int(self._port))
        self._open |= {writer, far_writer}
        for source, target in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(_copy(source, target), name="road")
            self._tasks.add(task)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.CancelledError):
        while piece := await source.read(1 << 16):
            target.write(piece)
            await target.drain()
    target.close()


@asynccontextmanager
async def road_to(kubeconfig: Object) -> AsyncIterator[Road]:
    """A road to the server of a kubeconfig, which leads over it from then on."""
    cluster = kubeconfig["clusters"][0]["cluster"]
    parts = urlsplit(cluster["server"])
    road = Road(parts.netloc)
    await road.begin()
    cluster["server"] = urlunsplit(parts._replace(netloc=road.address))
    try:
        yield road
    finally:
        await road.end()
