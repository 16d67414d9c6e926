"""The requests of one connection: each in its turn, in the connection's own task."""

from __future__ import annotations

import asyncio
import re

import orjson
import pytest
from tests.apiserver.wire import Wire, configmap
from tests.waiting import until

from hortus.apiserver import ApiServerSettings, ServerLimits
from hortus.testing.apiserver import TestServer, running_apiserver


async def test_requests_sent_at_once_are_answered_in_order_and_leave_nothing_behind(
    server: TestServer, wire: Wire, namespace: str
) -> None:
    collection = f"/api/v1/namespaces/{namespace}/configmaps"
    assert (await wire.post(collection, configmap("there"))).code == 201
    head = f"Host: localhost\r\nAuthorization: Bearer {server.token}\r\n"
    asked = []
    for number in range(40):
        name = "there" if number % 2 else f"missing-{number}"
        body = '{"data":{"c":"d"}}' if number % 4 == 3 else ""
        sent = f"Content-Type: application/merge-patch+json\r\nContent-Length: {len(body)}\r\n" if body else ""
        asked.append(f"{'PATCH' if body else 'GET'} {collection}/{name} HTTP/1.1\r\n{head}{sent}\r\n{body}")
    asked.append(f"GET /version HTTP/1.1\r\n{head}Connection: close\r\n\r\n")
    reader, writer = await asyncio.open_connection("127.0.0.1", server.server.port, ssl=server.tls())
    writer.write("".join(asked).encode())
    answers = (await asyncio.wait_for(reader.read(), 60)).decode()
    writer.close()
    codes = re.findall(r"HTTP/1\.1 (\d+) ", answers)
    assert codes == ["404", "200"] * 20 + ["200"]
    assert re.findall(r'"name":"(missing-\d+)"', answers) == [f"missing-{number}" for number in range(0, 40, 2)]
    assert "Warning:" not in answers


async def test_a_body_that_nobody_reads_is_taken_before_the_next_request(server: TestServer) -> None:
    head = f"Host: localhost\r\nAuthorization: Bearer {server.token}\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", server.server.port, ssl=server.tls())
    writer.write(f"POST /version HTTP/1.1\r\n{head}Content-Length: 6\r\n\r\nun".encode())
    refused = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    assert refused.startswith(b"HTTP/1.1 405 ")
    writer.write(f"read GET /version HTTP/1.1\r\n{head}Connection: close\r\n\r\n".replace(" ", "", 1).encode())
    answers = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    assert b"HTTP/1.1 200 OK" in answers


async def test_a_connection_whose_answer_is_being_taken_is_not_idle() -> None:
    """One connection more than the server takes: the idle one makes room, though the other asked before it."""
    settings = ApiServerSettings(limits=ServerLimits(connections=2), compress=False)
    async with running_apiserver(settings=settings) as server:
        head = f"Host: localhost\r\nAuthorization: Bearer {server.token}\r\n"
        path = "/api/v1/namespaces/default/configmaps"

        async def opened(request: str, body: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.server.port, ssl=server.tls())
            writer.write(f"{request}\r\n{head}\r\n".encode() + body)
            return reader, writer

        for number in range(16):
            body = orjson.dumps(configmap(f"large-{number}", {"text": "x" * 1_000_000}))
            request = f"POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {len(body)}"
            reader, writer = await opened(request, body)
            assert (await asyncio.wait_for(reader.read(), 60)).startswith(b"HTTP/1.1 201 ")
            writer.close()
        taking, first = await opened(f"GET {path} HTTP/1.1")
        answer = (await asyncio.wait_for(taking.readuntil(b"\r\n\r\n"), 60)).decode()
        idle, second = await opened("GET /version HTTP/1.1")
        assert (await asyncio.wait_for(idle.readuntil(b"}"), 60)).startswith(b"HTTP/1.1 200 ")
        reader, third = await opened("GET /version HTTP/1.1\r\nConnection: close")
        assert (await asyncio.wait_for(reader.read(), 60)).startswith(b"HTTP/1.1 200 ")
        length = int(answer.partition("Content-Length: ")[2].partition("\r\n")[0])
        assert length > 16_000_000
        assert len(await asyncio.wait_for(taking.readexactly(length), 60)) == length
        for writer in (first, second, third):
            writer.close()


async def test_an_answer_is_not_written_on_when_its_connection_was_dropped(
    server: TestServer, wire: Wire, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(16):
        assert (await wire.post(path, configmap(f"large-{number}", {"text": "x" * 1_000_000}))).code == 201
    listener = server.server._listener
    assert listener is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", server.server.port, ssl=server.tls())
    head = f"Host: localhost\r\nAuthorization: Bearer {server.token}\r\n"
    writer.write(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
    await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    assert listener.answers._taken > 16_000_000

    async def drop() -> bool:
        full = [transport for transport in listener.transports if transport.get_write_buffer_size()]
        for transport in full:
            transport.abort()
        return bool(full)

    # The answer may not have been written so far that the socket is full; later the server drops it by itself.
    await until(lambda: asyncio.wrap_future(asyncio.run_coroutine_threadsafe(drop(), server.loop)))
    async with asyncio.timeout(20):
        while listener.answers._taken:
            assert (await wire.get("/version")).code == 200
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []
    writer.close()
