"""A fence in the context of some work, asked before each request leaves."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from hortus.kube import Client, Resource
from hortus.kube.access import Access
from hortus.kube.errors import ConnectionFailed
from hortus.kube.fencing import Fenced, set_fence

from .scripted import Script, failure, serving

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
BODY = {"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}


class Gate:
    """Lets so many checks pass."""

    def __init__(self, passes: int) -> None:
        self.passes = passes

    def __call__(self) -> None:
        self.passes -= 1
        if self.passes < 0:
            raise Fenced("not yours any more")


@pytest.mark.parametrize("passes", [0, 1])
async def test_nothing_is_sent_when_the_fence_closes_before_or_after_the_head_is_ready(passes: int) -> None:
    script = Script(BODY)
    async with serving(script) as access, Client(access) as client:
        await client.get(CONFIGMAPS, "a", "default")
        set_fence(Gate(passes))
        with pytest.raises(Fenced, match="not yours"):
            await client.patch(CONFIGMAPS, "a", {"data": {}}, "default")
        set_fence(None)
        await client.patch(CONFIGMAPS, "a", {"data": {}}, "default")
    assert [request.method for request in script.requests] == ["GET", "PATCH"]


async def test_each_attempt_asks_again() -> None:
    script = Script(failure(429, "TooManyRequests", Retry_After="0"), BODY)
    async with serving(script) as access, Client(access) as client:
        set_fence(Gate(2))
        with pytest.raises(Fenced):
            await client.patch(CONFIGMAPS, "a", {"data": {}}, "default")
    assert len(script.requests) == 1


async def test_a_cut_client_fails_calls_in_flight_and_stays_usable() -> None:
    held = asyncio.Event()
    reached = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        reached.set()
        await held.wait()
        return web.Response()

    async with serving(Script(hang, BODY)) as access, Client(access) as client:
        waiting = asyncio.create_task(client.create(CONFIGMAPS, BODY))
        await reached.wait()
        client.cut()
        with pytest.raises(ConnectionFailed):
            await waiting
        assert (await client.get(CONFIGMAPS, "a", "default"))["metadata"]["name"] == "a"
        held.set()


async def test_a_long_body_stops_in_the_middle_when_the_fence_closes_while_it_is_sent() -> None:
    """A process can be stopped between two pieces of one request, and its lease runs out meanwhile."""
    received, over = bytearray(), asyncio.Event()

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(1 << 16):
            received.extend(piece)
        writer.transport.abort()
        over.set()

    server = await asyncio.start_server(read, "127.0.0.1", 0)
    size = 4 << 20
    large = {"metadata": {"name": "a", "namespace": "default"}, "data": {"blob": "x" * size}}
    try:
        async with Client(Access(server=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")) as client:
            set_fence(Gate(4))
            with pytest.raises(Fenced, match="not yours"):
                await client.create(CONFIGMAPS, large)
            set_fence(None)
        async with asyncio.timeout(60):
            await over.wait()
    finally:
        server.close()
    assert 0 < len(received) < size
