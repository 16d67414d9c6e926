"""A server that drains: answers end their connections, watches end, idle connections are closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hortus.apiserver import ApiServerSettings
from hortus.testing.apiserver import TestServer, running_apiserver

MAPS = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def opened(server: TestServer, path: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.server.port, ssl=server.tls())
    writer.write(asked(server, path))
    try:
        yield reader, writer
    finally:
        writer.close()


def asked(server: TestServer, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()


async def test_a_drain_answers_each_connection_once_more_and_ends_it() -> None:
    async with (
        running_apiserver(settings=ApiServerSettings(drain=60.0)) as server,
        opened(server, "/version") as (busy, asking),
        opened(server, f"{MAPS}?watch=true") as (watch, _),
        opened(server, "/version") as (idle, _),
    ):
        assert b"Connection: close" not in await busy.readuntil(b"}")
        await watch.readuntil(b"\r\n\r\n")
        await idle.readuntil(b"}")
        stopping = asyncio.run_coroutine_threadsafe(server.server.stop(), server.loop)
        await asyncio.wait_for(watch.readuntil(b"0\r\n\r\n"), 30)
        asking.write(asked(server, "/version"))
        answer = await asyncio.wait_for(busy.read(), 30)
        assert b"HTTP/1.1 200 OK" in answer
        assert b"Connection: close" in answer
        async with opened(server, "/version") as (late, _):
            assert b"Connection: close" in await asyncio.wait_for(late.read(), 30), "a new client is answered once"
        await asyncio.wait_for(idle.read(), 30)
        await asyncio.wrap_future(stopping)
