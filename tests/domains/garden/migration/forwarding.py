"""Links between two sites that can be cut: a forwarder in front of each peer port of etcd.

Peers say who they are in the head of each connection (`X-Server-From`). A forwarder of the inside takes peers of its
own site alone, as an address within a seed would; one of the outside takes all while the link is whole.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

_HEAD = 16 * 1024


class Links:
    """The link between the sites, with all connections that go over it."""

    def __init__(self) -> None:
        self.whole = True
        self.site_of: Callable[[str], str] = lambda member_id: ""
        """The site of a member by its ID in hexadecimal digits."""
        self._crossing: set[asyncio.StreamWriter] = set()
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        self.whole = False
        for writer in list(self._crossing):
            writer.transport.abort()

    def heal(self) -> None:
        self.whole = True

    async def forward(self, port: int, target: int, *, site: str, is_inside: bool) -> None:
        """Forward a port to a member's own."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await self._connect(reader, writer, target, site, is_inside)
            except (OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
                pass
            finally:
                self._tasks.discard(task)
                self._crossing.discard(writer)
                writer.transport.abort()

        self._servers.append(await asyncio.start_server(accept, "127.0.0.1", port))

    async def _connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int, site: str, is_inside: bool
    ) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        caller = self._caller(head)
        if is_inside and caller not in ("", site):
            return
        if caller != site:
            if not self.whole:
                return
            self._crossing.add(writer)
        other_reader, other = await asyncio.open_connection("127.0.0.1", target)
        other.write(head)
        try:
            await asyncio.gather(_pump(reader, other), _pump(other_reader, writer))
        finally:
            other.transport.abort()

    def _caller(self, head: bytes) -> str:
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"x-server-from":
                return self.site_of(value.strip().decode())
        return ""

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        with contextlib.suppress(OSError, RuntimeError):
            writer.write_eof()
