"""Answers as bytes: what each version and method of HTTP gets."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hortus.apiserver.resources.names import random_uid
from hortus.testing.apiserver import TestServer

_PATH = "/api/v1/namespaces/default"


@asynccontextmanager
async def _connected(server: TestServer) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    port = int(server.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=server.tls())
    try:
        yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


async def _head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[:-1]
    return lines[0], {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}


async def _asked(
    server: TestServer, method: str, *, version: str = "1.1", headers: str = "", path: str = _PATH
) -> tuple[str, dict[str, str], bytes]:
    """One request on a connection of its own: status line, headers, and what follows until the server closes."""
    head = f"{method} {path} HTTP/{version}\r\nHost: a\r\nAuthorization: Bearer {server.token}\r\n{headers}\r\n"
    async with _connected(server) as (reader, writer):
        writer.write(head.encode())
        status, found = await _head(reader)
        return status, found, await asyncio.wait_for(reader.read(), 60)


async def test_a_client_that_closes_gets_connection_close_and_the_whole_body(server: TestServer) -> None:
    status, headers, body = await _asked(server, "GET", headers="Connection: close\r\n")
    assert status == "HTTP/1.1 200 OK"
    assert headers["connection"] == "close"
    assert int(headers["content-length"]) == len(body)
    assert headers["content-type"] == "application/json"
    assert headers["cache-control"] == "no-cache, private"


async def test_an_old_client_is_answered_in_its_version_and_the_connection_closed(server: TestServer) -> None:
    status, headers, body = await _asked(server, "GET", version="1.0")
    assert status == "HTTP/1.0 200 OK"
    assert "connection" not in headers
    assert int(headers["content-length"]) == len(body)


async def test_head_gets_the_length_without_the_body(server: TestServer) -> None:
    _, plain, _ = await _asked(server, "GET", headers="Connection: close\r\n", path="/version")
    status, headers, body = await _asked(server, "HEAD", headers="Connection: close\r\n", path="/version")
    assert (status, body) == ("HTTP/1.1 200 OK", b"")
    assert headers["content-length"] == plain["content-length"]


async def test_objects_cannot_be_asked_for_by_head(server: TestServer) -> None:
    status, _, body = await _asked(server, "HEAD", headers="Connection: close\r\n")
    assert (status, body) == ("HTTP/1.1 405 Method Not Allowed", b"")


async def test_requests_in_one_packet_are_answered_in_order(server: TestServer) -> None:
    request = f"GET %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    async with _connected(server) as (reader, writer):
        writer.write((request % _PATH + request % f"{_PATH}-not-there").encode())
        first, headers = await _head(reader)
        await reader.readexactly(int(headers["content-length"]))
        second, headers = await _head(reader)
        await reader.readexactly(int(headers["content-length"]))
    assert (first, second) == ("HTTP/1.1 200 OK", "HTTP/1.1 404 Not Found")


@pytest.mark.parametrize("sent", ["my-own", ""])
async def test_an_audit_id_is_given_back_or_made(server: TestServer, sent: str) -> None:
    headers = f"Connection: close\r\nAudit-Id: {sent}\r\n" if sent else "Connection: close\r\n"
    _, found, _ = await _asked(server, "GET", headers=headers)
    assert found["audit-id"] == sent or (not sent and uuid.UUID(found["audit-id"]).version == 4)


def test_random_uids_are_of_version_4_and_differ() -> None:
    made = {random_uid() for _ in range(200)}
    assert len(made) == 200
    assert all(uuid.UUID(text).version == 4 and uuid.UUID(text).variant == uuid.RFC_4122 for text in made)
