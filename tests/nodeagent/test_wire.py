"""The small HTTP client against servers that behave well, badly, and not at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from hortus.kube import Access, Client, ConnectionSettings, Resource, SystemClock
from hortus.kube.errors import ConnectionFailed, Garbage, NotFound, RequestTimedOut, TooManyRequests
from hortus.kube.retries import Retries
from hortus.nodeagent.wire import LeanTransport, status_of

THINGS = Resource("", "v1", "things", "Thing", namespaced=False)
THING = b'{"metadata":{"name":"a","resourceVersion":"1"}}'
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@contextlib.asynccontextmanager
async def talking(*talks: Talk, attempts: int = 4, timeout: float = 5.0) -> AsyncIterator[tuple[Client, list[int]]]:
    """A client of a server that has each connection in its own way; the list holds their numbers."""
    connections: list[int] = []
    handlers: list[asyncio.Task[None]] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.append(task)
        number = len(connections)
        connections.append(number)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await talks[min(number, len(talks) - 1)](reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    settings = ConnectionSettings(timeout=timeout, retries=Retries(attempts=attempts, first_wait=0.001))
    transport = LeanTransport(Access(server=f"http://127.0.0.1:{port}"), settings=settings, clock=SystemClock())
    async with server:
        async with Client.over(transport) as client:
            yield client, connections
        await asyncio.gather(*handlers)


def replies(*bodies: bytes) -> Talk:
    """Answers one request after the other on a connection, then ends it."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for body in bodies:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(body)
            await writer.drain()

    return talk


async def test_calls_share_one_connection_and_a_closed_one_is_replaced() -> None:
    async with talking(replies(answer(THING), answer(THING))) as (client, connections):
        for _ in range(2):
            assert (await client.get(THINGS, "a"))["metadata"]["name"] == "a"
        assert connections == [0]
        assert (await client.get(THINGS, "a"))["metadata"]["name"] == "a"
        assert connections == [0, 1]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (answer(THING)[:-5], "in the middle of its answer"),
        (b"220 mail.example.org ESMTP\r\n\r\n", "is not HTTP/1.1"),
        (b"", "before its answer"),
    ],
)
async def test_a_broken_answer_is_a_failed_connection(body: bytes, problem: str) -> None:
    async with talking(replies(body), attempts=1) as (client, _):
        with pytest.raises(ConnectionFailed) as failed:
            await client.get(THINGS, "a")
        assert problem in str(failed.value) or "not HTTP/1.1" in str(failed.value)


async def test_a_read_is_repeated_after_a_broken_answer_and_a_write_is_not() -> None:
    async with talking(replies(answer(THING)[:-5]), replies(answer(THING))) as (client, connections):
        assert (await client.get(THINGS, "a"))["metadata"]["name"] == "a"
        assert connections == [0, 1]
    async with talking(replies(answer(THING)[:-5]), replies(answer(THING))) as (client, connections):
        with pytest.raises(ConnectionFailed):
            await client.create(THINGS, {"metadata": {"name": "a"}})
        assert connections == [0]


async def test_errors_of_the_server_keep_their_reason_and_their_wish() -> None:
    status = b'{"kind":"Status","reason":"NotFound","message":"no a","details":{"name":"a"},"code":404}'
    async with talking(replies(answer(status, "404 Not Found"))) as (client, _):
        with pytest.raises(NotFound, match="no a"):
            await client.get(THINGS, "a")
    busy = replies(answer(b"busy", "429 Too Many Requests", "Retry-After: 900"))
    async with talking(busy) as (client, _):
        with pytest.raises(TooManyRequests) as refused:
            await client.get(THINGS, "a")
        assert refused.value.retry_after is not None


async def test_a_silent_server_is_given_up() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with talking(silent, attempts=1, timeout=0.05) as (client, _):
        with pytest.raises(RequestTimedOut, match=r"no whole answer within 0\.05 s"):
            await client.get(THINGS, "a")


async def test_a_watch_in_pieces_is_read_line_by_line() -> None:
    lines = b"".join(b'{"type":"ADDED","object":%s}\n' % THING.replace(b'"1"', b'"%d"' % each) for each in (5, 6))
    pieces = [lines[:7], lines[7:90], lines[90:]]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with talking(replies(head + chunks + b"0\r\n\r\n")) as (client, _):
        events = client.watch(THINGS, resource_version="4")
        found = [(await anext(events)).object["metadata"]["resourceVersion"] for _ in range(2)]
        await events.aclose()
    assert found == ["5", "6"]


async def test_another_objects_answer_is_refused() -> None:
    async with talking(replies(answer(THING))) as (client, _):
        with pytest.raises(Garbage, match="another object"):
            await client.get(THINGS, "b")


async def test_the_status_of_a_page_is_returned_whatever_it_is() -> None:
    async with talking(replies(answer(b"", "503 Service Unavailable"))) as (client, _):
        assert await status_of(f"{client.access.server}/healthz", timeout=5) == 503
