"""Clients that are slow, silent, or too many: each is dropped or asked to wait, without effect on others."""

from __future__ import annotations

import asyncio
import contextlib
import socket as sockets
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.apiserver.wire import Wire, configmap
from tests.bad_inputs.apiserver.attacked import Socket, Target, attacked

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
JSON = "Content-Type: application/json"
TOO_MANY = (429, "TooManyRequests")
CONNECTIONS = 100
SHORT = 5.0
"""Seconds for everything that a client may take long for."""


@pytest.fixture(scope="module")
def hasty() -> Iterator[Target]:
    """A server without patience and with little room."""
    limits = {
        "connections": CONNECTIONS,
        "reads": 8,
        "writes": 8,
        "watches": 20,
        "bodies": 4 << 20,
        "answers": 24 << 20,
        "stalled": 2 * SHORT,
        **dict.fromkeys(("tlsHello", "firstRequest", "idle", "body"), SHORT),
    }
    with attacked(limits=limits) as running:
        yield running


@pytest.fixture(autouse=True)
async def _bystander(hasty: Target) -> AsyncIterator[None]:
    async with hasty.bystander():
        yield


_UNFINISHED = {
    "nothing": b"",
    "half a line": b"GET /api",
    "half a head": b"GET /version HTTP/1.1\r\nHost: x\r\nA: b",
    "half a body": b"POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{",
}


async def test_what_never_becomes_a_request_is_dropped(hasty: Target) -> None:
    async def is_dropped(sent: bytes) -> bool:
        async with hasty.socket() as socket:
            await socket.send(sent)
            return await socket.closed()

    dropped = await asyncio.gather(*map(is_dropped, _UNFINISHED.values()))
    assert dict(zip(_UNFINISHED, dropped, strict=True)) == dict.fromkeys(_UNFINISHED, True)


async def test_heads_and_bodies_that_drip_are_dropped_however_busy_they_look(hasty: Target) -> None:
    head = hasty.head("GET /version HTTP/1.1", *[f"A{number}: b" for number in range(100)])

    async def drips(before: bytes, drops: bytes) -> bool:
        async with hasty.socket() as socket:
            await socket.send(before)
            ended = asyncio.create_task(socket.closed())
            with contextlib.suppress(ConnectionError):
                for place in range(len(drops)):
                    await socket.send(drops[place : place + 1])
                    await asyncio.wait([ended], timeout=0.02)
                    if ended.done():
                        break
            return await ended

    first = drips(b"", head)
    second = drips(hasty.head("GET /version HTTP/1.1"), head)
    body = drips(hasty.head(f"POST {CONFIGMAPS} HTTP/1.1", JSON, f"Content-Length: {len(head)}"), head)
    chunks = drips(hasty.head(f"POST {CONFIGMAPS} HTTP/1.1", JSON, "Transfer-Encoding: chunked"), b"1\r\nx\r\n" * 200)
    assert await asyncio.gather(first, second, body, chunks) == [True] * 4


async def test_a_body_that_arrives_too_slowly_is_answered_with_a_timeout(hasty: Target) -> None:
    head = hasty.head(f"POST {CONFIGMAPS} HTTP/1.1", JSON, "Content-Length: 10")
    assert (await hasty.raw(head + b"{")).verdict == (504, "Timeout")


async def test_half_open_handshakes_make_room_for_whole_ones(hasty: Target) -> None:
    """Twice as many as there is room for; the bystander and newcomers get in all the same."""
    with hasty.grows_less_than(32), contextlib.ExitStack() as opened:

        def begin(count: int) -> None:
            for number in range(count):
                raw = opened.enter_context(sockets.create_connection(("127.0.0.1", hasty.port), timeout=60))
                if number % 2:
                    raw.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")

        await asyncio.to_thread(begin, 2 * CONNECTIONS)
        for _ in range(20):
            assert (await hasty.ask("GET /version HTTP/1.1")).code == 200


async def test_idle_connections_make_room_for_busy_ones(hasty: Target) -> None:
    tls = hasty.tls()
    with contextlib.ExitStack() as opened:

        def connect(count: int) -> None:
            for _ in range(count):
                raw = opened.enter_context(sockets.create_connection(("127.0.0.1", hasty.port), timeout=60))
                opened.enter_context(tls.wrap_socket(raw, server_hostname="127.0.0.1"))

        with hasty.grows_less_than(32):
            await asyncio.to_thread(connect, 2 * CONNECTIONS)
        assert (await hasty.ask("GET /version HTTP/1.1")).code == 200


async def test_garbage_instead_of_a_handshake_ends_it(hasty: Target) -> None:
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 100, b"\x16\x03\x01\xff\xff" + b"x" * 70_000):
        reader, writer = await asyncio.open_connection("127.0.0.1", hasty.port)
        with contextlib.suppress(ConnectionError):
            writer.write(garbage)
            await writer.drain()
            async with asyncio.timeout(60):
                assert b"HTTP/1.1 200" not in await reader.read()
        writer.close()
    assert (await hasty.ask("GET /version HTTP/1.1")).code == 200


async def test_requests_over_the_limit_are_answered_with_retry_after(hasty: Target) -> None:
    async with contextlib.AsyncExitStack() as opened:
        waiting = [await opened.enter_async_context(hasty.socket()) for _ in range(12)]
        begun = hasty.head(f"POST {CONFIGMAPS} HTTP/1.1", JSON, "Content-Length: 10") + b"{"
        for socket in waiting:
            await socket.send(begun)
        answers = [await socket.reply() for socket in waiting]
    assert sorted(answer.verdict for answer in answers) == [TOO_MANY] * 8 + [(504, "Timeout")] * 4
    refused = next(answer for answer in answers if answer.code == 429)
    assert b"\r\nRetry-After: 1\r\n" in refused.head
    assert refused.status["details"] == {"retryAfterSeconds": 1}


async def test_watches_over_the_limit_are_refused_as_too_many_requests(hasty: Target) -> None:
    async with contextlib.AsyncExitStack() as opened:
        watching = [await opened.enter_async_context(hasty.socket()) for _ in range(12)]
        for socket in watching:
            await socket.send(hasty.head(f"GET {CONFIGMAPS}?watch=1 HTTP/1.1"))
            await socket.reader.readuntil(b"\r\n")
        assert (await hasty.ask(f"GET {CONFIGMAPS}?watch=1 HTTP/1.1")).verdict == TOO_MANY
        assert (await hasty.ask(f"GET {CONFIGMAPS} HTTP/1.1")).code == 200, "lists have their own room"


async def test_bodies_that_are_too_large_together_are_refused_as_too_many_requests(hasty: Target) -> None:
    size = (3 << 20) - 100
    async with contextlib.AsyncExitStack() as opened:
        sending = [await opened.enter_async_context(hasty.socket()) for _ in range(3)]
        with hasty.grows_less_than(16):
            for socket in sending:
                await socket.send(hasty.head(f"POST {CONFIGMAPS} HTTP/1.1", JSON, f"Content-Length: {size}"))
                with contextlib.suppress(ConnectionError):
                    await socket.send(b"x" * (1 << 20))
            answers = [await socket.reply() for socket in sending]
    assert TOO_MANY in [answer.verdict for answer in answers]
    assert {answer.code for answer in answers} <= {429, 504}


async def _filled(wire: Wire) -> None:
    for number in range(24):
        made = await wire.post(CONFIGMAPS, configmap(f"large-{number}", {"x": "y" * 1_000_000}))
        assert made.code in (201, 409), made.body


async def _code(socket: Socket) -> bytes:
    """The code of an answer; empty for a client that was dropped before it read one."""
    try:
        return (await socket.reader.readuntil(b"\r\n")).split()[1]
    except asyncio.IncompleteReadError:
        return b""


async def test_answers_that_nobody_reads_are_bounded_and_dropped(hasty: Target) -> None:
    async with hasty.wire() as wire:
        await _filled(wire)
    asked = hasty.head(f"GET {CONFIGMAPS} HTTP/1.1")
    async with contextlib.AsyncExitStack() as opened:
        silent = [await opened.enter_async_context(hasty.socket(limit=1024)) for _ in range(20)]
        with hasty.grows_less_than(256):
            for socket in silent:
                await socket.send(asked)
            codes = [await _code(socket) for socket in silent]
            assert {b"200", b"429"} <= set(codes), "one at least has its answer, and one at least has to wait"
            async with asyncio.timeout(60):
                while (await hasty.raw(asked)).code == 429:
                    continue
        assert await asyncio.gather(*[socket.closed() for socket in silent]) == [True] * 20


async def test_requests_without_end_whose_answers_nobody_reads_are_dropped(hasty: Target) -> None:
    async with hasty.wire() as wire:
        await _filled(wire)
    asked = hasty.head("GET /openapi/v3/api/v1 HTTP/1.1") * 2000
    async with hasty.socket(limit=1024) as socket:
        with hasty.grows_less_than(48):
            socket.writer.transport.pause_reading()
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(60):
                    for _ in range(100):
                        await socket.send(asked)
        with contextlib.suppress(RuntimeError):
            socket.writer.transport.resume_reading()
        assert await socket.closed()


async def test_watchers_that_never_read_are_dropped_and_cost_little(hasty: Target) -> None:
    async with hasty.wire() as wire, contextlib.AsyncExitStack() as opened:
        await wire.post(CONFIGMAPS, configmap("noisy"))
        silent = [await opened.enter_async_context(hasty.socket(limit=1024)) for _ in range(8)]
        for socket in silent:
            await socket.send(hasty.head(f"GET {CONFIGMAPS}?watch=1 HTTP/1.1"))
            socket.writer.transport.pause_reading()
        async with wire.watch(f"{CONFIGMAPS}?watch=1&fieldSelector=metadata.name=noisy") as events:
            await events.next()
            with hasty.grows_less_than(128):
                for number in range(60):
                    filling = {"data": {"x": f"{number} " + "y" * 500_000}}
                    changed = await wire.merge(f"{CONFIGMAPS}/noisy", filling)
                    assert changed.code == 200
                    assert (await events.next())["object"]["data"]["x"] == filling["data"]["x"]
                async with asyncio.timeout(60):
                    while b'resource="configmaps"} 1\n' not in (await wire.get("/metrics")).body:
                        continue
