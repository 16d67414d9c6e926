"""Receivers on loopback for tests, with TLS where a test asks for it."""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
from tests.kube.certificates import Pair, issue
from tests.waiting import PATIENCE

from hortus.domains.garden.audit.buffer.composition import RunningBuffer, running_buffer
from hortus.domains.garden.audit.buffer.server import RECEIVER_LIMITS
from hortus.domains.garden.audit.buffer.settings import BufferSettings, read_settings
from hortus.kube import yaml
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.listeners import ListenerLimits
from hortus.kube.secret import Secret
from hortus.kube.tls import client_context
from hortus.testing import FakeClock

LOOPBACK = "127.0.0.1:0"


def events(*numbers: int, size: int = 50) -> bytes:
    items = b",".join(b'{"auditID":"%06d","pad":"%b"}' % (number, b"x" * size) for number in numbers)
    return b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[%b]}' % items


def numbers_in(content: bytes) -> list[int]:
    """The numbers of all events in NDJSON, without the spool's own reports."""
    found = [msgspec.json.decode(line) for line in content.splitlines()]
    return [int(event["auditID"]) for event in found if "auditID" in event]


def settings_in(folder: Path, **given: object) -> BufferSettings:
    """Settings for a plain receiver with a file sink; `given` replaces parts."""
    document: dict[str, object] = {
        "listen": LOOPBACK,
        "metrics": LOOPBACK,
        "plainHTTP": "tls" not in given,
        "spool": {"folder": "spool", "maxBytes": "1Mi", "segmentBytes": "64Ki", "retainBytes": "256Ki"},
        "sinks": [{"name": "archive", "file": {"path": "audit.ndjson"}}],
    } | given
    path = folder / "receiver.yaml"
    path.write_text(yaml.dump(document))
    return read_settings(path)


def no_fault(error: BaseException) -> None:
    raise AssertionError("a receiver of a test failed") from error


@asynccontextmanager
async def receiving(
    settings: BufferSettings, *, clock: Clock | None = None, limits: ListenerLimits = RECEIVER_LIMITS
) -> AsyncIterator[RunningBuffer]:
    async with running_buffer(settings, clock=clock or SystemClock(), failed=no_fault, limits=limits) as running:
        yield running


async def passing(clock: FakeClock, done: Callable[[], bool]) -> None:
    """Lets time pass, a minute at a time, until `done`."""
    async with asyncio.timeout(PATIENCE):
        while not done():
            await clock.advance(60.0)
            # Sockets and threads of the receiver, which no clock moves, get their turn.
            await asyncio.sleep(0.01)


async def post(running: RunningBuffer, body: bytes) -> int:
    """Sends `body` without TLS; returns the status."""
    url = f"http://127.0.0.1:{running.webhook.port}/audit"
    async with aiohttp.ClientSession() as session, session.post(url, data=io.BytesIO(body)) as answer:
        return answer.status


class TlsFiles:
    """A CA with a server's and clients' certificates, as files of a receiver in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ca = issue("ca", ca=True)
        self.write_server()
        (folder / "ca.crt").write_bytes(self.ca.pem)

    def write_server(self) -> Pair:
        server = issue("receiver", self.ca, addresses=("127.0.0.1",))
        (self._folder / "tls.key").write_bytes(server.key_pem)
        (self._folder / "tls.crt").write_bytes(server.pem)
        return server

    def part(self, names: Sequence[str] = ()) -> dict[str, object]:
        files = {"certificateFile": "tls.crt", "keyFile": "tls.key", "clientCAFile": "ca.crt"}
        return files | ({"clientNames": list(names)} if names else {})

    def context(self, client: Pair | None) -> ssl.SSLContext:
        key = Secret(client.key_pem.decode()) if client else None
        return client_context(ca=self.ca.pem, certificate=client.pem if client else b"", key=key)

    async def post(self, running: RunningBuffer, body: bytes, client: Pair | None) -> int:
        context = self.context(client)
        url = f"https://127.0.0.1:{running.webhook.port}/audit"
        async with aiohttp.ClientSession() as session, session.post(url, data=body, ssl=context) as answer:
            return answer.status
