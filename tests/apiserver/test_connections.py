"""The requests of one connection: each in its turn, in the connection's own task."""

from __future__ import annotations

import asyncio
import re

from tests.apiserver.wire import Wire, configmap

from hortus.testing.apiserver import TestServer


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
