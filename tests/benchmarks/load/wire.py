"""HTTP/1.1 over TLS by hand: one request at a time on one connection, answers cut by their length.

A real client would cost more than the server does, and its figures would be about itself.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import urlsplit

from hortus.kube import yaml


class Target(NamedTuple):
    host: str
    port: int
    tls: ssl.SSLContext
    head: str
    """Header lines that every request carries."""


def target_of(kubeconfig: Path) -> Target:
    """The server and the credentials of a kubeconfig of `hortus up`."""
    document = yaml.load(kubeconfig.read_bytes())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    if "certificate-authority" in cluster:
        tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
    else:
        tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    url = urlsplit(cluster["server"])
    head = f"Host: {url.netloc}\r\nUser-Agent: bench/1\r\nAccept: application/json\r\n"
    if "token" in user:
        head += f"Authorization: Bearer {user['token']}\r\n"
    else:
        with tempfile.NamedTemporaryFile() as file:
            for part in ("client-certificate-data", "client-key-data"):
                file.write(base64.b64decode(user[part]) + b"\n")
            file.flush()
            tls.load_cert_chain(file.name)
    return Target(str(url.hostname), url.port or 443, tls, head)


class Caller(asyncio.Protocol):
    """One connection. `call` sends a request and gives code and body; `lines` follows a watch."""

    def __init__(self, head: str) -> None:
        self._head = head
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._needed = 0
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._on_data: Callable[[bytes, float], None] | None = None

    @classmethod
    async def open(cls, target: Target) -> Caller:
        loop = asyncio.get_running_loop()
        _, caller = await loop.create_connection(
            lambda: cls(target.head), target.host, target.port, ssl=target.tls, server_hostname=target.host
        )
        return caller

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the server closed the connection"))

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _send(self, method: str, path: str, body: bytes, content_type: str) -> None:
        assert self._transport is not None
        length = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n" if body else ""
        self._transport.write(f"{method} {path} HTTP/1.1\r\n{self._head}{length}\r\n".encode() + body)

    async def call(
        self, method: str, path: str, body: bytes = b"", content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        self._answer = asyncio.get_running_loop().create_future()
        self._send(method, path, body, content_type)
        return await self._answer

    def watch(self, path: str, on_data: Callable[[bytes, float], None]) -> None:
        """`on_data` gets what arrives, chunk marks and all, with the time it came."""
        self._on_data = on_data
        self._send("GET", path, b"", "")

    def data_received(self, data: bytes) -> None:
        if self._on_data is not None:
            self._on_data(data, time.perf_counter())
            return
        self._buffer += data
        if not self._needed:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            start = self._buffer.find(b"ontent-Length: ", 0, end) + 15
            if start >= 15:
                self._needed = end + 4 + int(self._buffer[start : self._buffer.index(b"\r", start)])
            elif self._buffer.endswith(b"0\r\n\r\n"):
                # In chunks, and this is the last one: JSON holds no raw line ends.
                self._needed = len(self._buffer)
            else:
                return
        if len(self._buffer) < self._needed:
            return
        answer, self._buffer, self._needed = bytes(self._buffer), bytearray(), 0
        assert self._answer is not None
        self._answer.set_result((int(answer[9:12]), answer))
