"""Each listener of the product against clients that send half of what they should, slowly, too much, or too often."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web
from tests.listeners.listeners import LISTENERS, READ_NO_BODY, SPEAK_TLS, Listening, Start
from tests.waiting import PATIENCE, until

import hortus
from hortus.engine.health import Address
from hortus.engine.serving.listening import HttpListener
from hortus.kube.listeners import ListenerLimits

SHORT = ListenerLimits(connections=8, tls_hello=0.3, head=0.3, idle=0.3, body=0.3, stalled=0.3)
FEW = ListenerLimits(connections=8)
OTHER = "127.0.0.2"
Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


ANY = pytest.mark.parametrize("start", list(LISTENERS.values()), ids=list(LISTENERS))
TLS = pytest.mark.parametrize("start", [LISTENERS[name] for name in SPEAK_TLS], ids=SPEAK_TLS)
_READING = [name for name in LISTENERS if name not in READ_NO_BODY]
READING = pytest.mark.parametrize("start", [LISTENERS[name] for name in _READING], ids=_READING)


async def ended(opened: Opened) -> bytes:
    """All that the server sends until it closes the connection."""
    reader, writer = opened
    found = b""
    with suppress(ConnectionError):
        async with asyncio.timeout(PATIENCE):
            while piece := await reader.read(1 << 16):
                found += piece
    writer.transport.abort()
    return found


async def dripping(opened: Opened) -> bytes:
    """The same, of a client that sends a byte from time to time."""
    reading = asyncio.ensure_future(ended(opened))
    while not (await asyncio.wait((reading,), timeout=0.05))[0]:
        opened[1].write(b"x")
    return reading.result()


async def status(found: Listening, sender: str = "127.0.0.1") -> str:
    reader, writer = await found.connect(sender)
    writer.write(found.request())
    line = await asyncio.wait_for(reader.readline(), PATIENCE)
    writer.transport.abort()
    return line.decode().split(" ")[1] if line else "closed"


@TLS
async def test_half_a_handshake_ends(start: Start) -> None:
    async with start(SHORT) as found:
        opened = await found.connect(plain=True)
        opened[1].write(b"\x16\x03\x01")
        assert await ended(opened) == b""


@ANY
async def test_half_a_head_ends_however_it_is_sent(start: Start) -> None:
    async with start(SHORT) as found:
        half, silent, drips = [await found.connect() for _ in range(3)]
        for _, writer in (half, drips):
            writer.write(found.request()[:-2] + b"X-Slow: ")
        assert await asyncio.gather(ended(half), ended(silent), dripping(drips)) == [b"", b"", b""]


@ANY
async def test_half_a_second_head_ends(start: Start) -> None:
    async with start(SHORT) as found:
        opened = await found.connect()
        opened[1].write(found.request() + found.request()[:-2])
        assert (await dripping(opened)).split(b" ")[1] == found.answer.encode()


@ANY
async def test_a_head_without_end_is_refused_before_it_takes_memory(start: Start) -> None:
    async with start(FEW) as found:
        opened = await found.connect()
        opened[1].write(found.request()[:-2])
        reading = asyncio.ensure_future(ended(opened))
        sent = 0
        while not reading.done() and not opened[1].is_closing() and sent < 100:
            opened[1].write(b"X-Long: " + b"x" * 8_000 + b"\r\n")
            await asyncio.wait((reading,), timeout=0.005)
            sent += 1
        assert re.match(rb"HTTP/1\.1 4(00|31) |$", await reading)
        assert sent < 100


@READING
async def test_a_body_that_drips_ends(start: Start) -> None:
    async with start(SHORT) as found:
        opened = await found.connect()
        opened[1].write(found.body_head(1000) + b"{")
        assert re.match(rb"HTTP/1\.1 (4\d\d|504) ", await dripping(opened))


@ANY
async def test_a_sender_of_half_heads_keeps_nobody_out(start: Start) -> None:
    async with start(FEW) as found:
        opened = [await found.connect(OTHER) for _ in range(3 * FEW.connections)]
        for _, writer in opened:
            writer.write(found.request()[:-2])
        assert [await status(found) for _ in range(5)] == [found.answer] * 5
        for _, writer in opened:
            writer.transport.abort()


@ANY
async def test_a_sender_of_half_handshakes_keeps_nobody_out(start: Start) -> None:
    async with start(FEW) as found:
        opened = [await found.connect(OTHER, plain=True) for _ in range(3 * FEW.connections)]
        assert [await status(found) for _ in range(5)] == [found.answer] * 5
        for _, writer in opened:
            writer.transport.abort()


@READING
async def test_a_sender_of_half_bodies_keeps_nobody_out(start: Start) -> None:
    async with start(FEW) as found:
        opened = []
        for _ in range(3 * FEW.connections):
            opened.append(await found.connect(OTHER))
            opened[-1][1].write(found.body_head(1000) + b"{")
        assert [await status(found) for _ in range(5)] == [found.answer] * 5
        for _, writer in opened:
            writer.transport.abort()


def test_nothing_else_listens() -> None:
    """A server that is made otherwise has none of these limits."""
    listening = re.compile(
        r"TCPSite|SockSite|UnixSite|NamedPipeSite|\bstart_(?:unix_)?server\(|create_(?:unix_)?server\(|HTTPServer\(|\.listen\(\w*_?BACKLOG|run_app"
    )
    root = Path(hortus.__file__).parent
    found = {str(path.relative_to(root)) for path in root.rglob("*.py") if listening.search(path.read_text())}
    assert found == {
        "apiserver/composition.py",
        "cli/envtest/etcd.py",  # stands for etcd in envtest, on loopback, and answers that it is healthy
        "engine/serving/listening.py",
        "nodeagent/serving.py",
    }


async def test_a_client_that_takes_no_answer_is_dropped() -> None:
    """The answer is larger than what the system's buffers take."""

    async def large(request: web.BaseRequest) -> web.Response:
        return web.Response(body=b"x" * (16 << 20))

    async with HttpListener(Address("127.0.0.1", 0), large, limits=SHORT) as listener:
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await until(lambda: listener.open)
        await until(lambda: not listener.open)
        writer.transport.abort()
