"""A server under attack, seen from three sides: the attacker's raw socket, a well-behaved client, and its memory.

    async with attacked() as target:
        async with target.bystander():
            with target.grows_less_than(64):
                answer = await target.raw(b"POST ...")

The server is a process of its own: what it holds at most is read from its `VmHWM`, which the kernel counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from tests.apiserver.wire import Wire, connected

_ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 60.0
"""Seconds after which an answer that does not come fails the test, on a machine that does other things as well."""
_PROMPT = 10.0
"""Seconds of CPU that the server's loop uses at most while a well-behaved client waits, whatever the load from others.

The time on a clock says less: the machine does other things as well.
"""


class Reply(NamedTuple):
    code: int
    head: bytes
    body: bytes

    @property
    def status(self) -> Any:
        return orjson.loads(self.body)

    @property
    def verdict(self) -> tuple[int, str]:
        """Code and reason of a Status (kube-apiserver, too, gives none for some); the two codes must agree."""
        status = self.status
        assert status["kind"] == "Status", status
        assert status["code"] == self.code, status
        return self.code, status.get("reason", "")


class Socket:
    """One TLS connection on which any bytes can be sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Until the server takes no more; raises ConnectionError when it has closed."""
        async with asyncio.timeout(PATIENCE):
            self.writer.write(data)
            await self.writer.drain()

    async def reply(self) -> Reply:
        """The next answer with a Content-Length."""
        async with asyncio.timeout(PATIENCE):
            head = await self.reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").lower().split("\r\n")
            length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
            return Reply(int(head.split(b" ", 2)[1]), head, await self.reader.readexactly(length))

    async def closed(self) -> bool:
        """Reports whether the server ends the connection."""
        try:
            async with asyncio.timeout(PATIENCE):
                while await self.reader.read(65536):
                    pass
        except TimeoutError:
            return False
        except (ConnectionError, ssl.SSLError):
            pass
        return True


class Target:
    def __init__(self, process: subprocess.Popen[str], port: int, ca: str, token: str, other_token: str) -> None:
        self.process = process
        self.port = port
        self.ca = ca
        self.token = token
        """The token of the administrator who attacks."""
        self.other_token = other_token
        """The token of another administrator, who does not."""
        self.url = f"https://127.0.0.1:{port}"

    def tls(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.ca)
        return context

    def wire(self, token: str | None = None, *, cluster: str = "") -> contextlib.AbstractAsyncContextManager[Wire]:
        base = f"{self.url}/clusters/{cluster}" if cluster else self.url
        return connected(base, self.token if token is None else token, self.tls(), patience=2 * PATIENCE)

    @contextlib.asynccontextmanager
    async def socket(self, tls: ssl.SSLContext | None = None, *, limit: int = 2**16) -> AsyncIterator[Socket]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=tls or self.tls(), limit=limit)
        try:
            yield Socket(reader, writer)
        finally:
            writer.transport.abort()
            await asyncio.sleep(0)

    def head(self, line: str, *headers: str, token: str | None = None) -> bytes:
        lines = [line, "Host: x", f"Authorization: Bearer {self.token if token is None else token}", *headers, "", ""]
        return "\r\n".join(lines).encode("utf-8", "surrogateescape")

    async def raw(self, sent: bytes) -> Reply:
        """The first answer to these bytes on a connection of their own."""
        async with self.socket() as socket:
            with contextlib.suppress(ConnectionError):
                await socket.send(sent)
            return await socket.reply()

    async def ask(self, line: str, *headers: str, body: bytes = b"", token: str | None = None) -> Reply:
        """A request of exactly this request line and these headers."""
        length = [f"Content-Length: {len(body)}"] if body else []
        return await self.raw(self.head(line, *length, *headers, token=token) + body)

    def computed(self) -> float:
        """Seconds of CPU that the server's loop has used; threads do their work next to it."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0]) / 1e9

    def resident(self) -> float:
        """MiB that the server holds."""
        return _memory(self.process.pid, "VmRSS")

    @contextlib.contextmanager
    def grows_less_than(self, mib: float) -> Iterator[None]:
        """The most that the server holds within the block is less than `mib` above what it holds before."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        before = self.resident()
        yield
        grown = _memory(self.process.pid, "VmHWM") - before
        print(f"grew by {grown:.1f} MiB")
        assert grown < mib, f"the server grew by {grown:.1f} MiB"

    @contextlib.asynccontextmanager
    async def bystander(self) -> AsyncIterator[None]:
        """Another user who reads and writes all the while, and is always answered, right and soon."""
        settled, done, waited = asyncio.Event(), asyncio.Event(), []

        async def behave() -> None:
            async with self.wire(self.other_token) as wire:
                number = 0
                while True:
                    number += 1
                    began, computed = time.monotonic(), self.computed()
                    body = {"metadata": {"generateName": "bystander-"}, "data": {"number": str(number)}}
                    async with asyncio.timeout(PATIENCE):
                        made = await wire.post("/api/v1/namespaces/kube-public/configmaps", body)
                        assert made.code == 201, made.body
                        path = f"/api/v1/namespaces/kube-public/configmaps/{made.body['metadata']['name']}"
                        assert (await wire.get(path)).body["data"] == {"number": str(number)}
                        assert (await wire.delete(path)).code == 200
                    assert self.computed() - computed < _PROMPT
                    waited.append(time.monotonic() - began)
                    settled.set()
                    if done.is_set():
                        return

        task = asyncio.create_task(behave())
        task.add_done_callback(lambda _: settled.set())
        await settled.wait()
        try:
            yield
        finally:
            done.set()
            await task
        print(f"bystander: {len(waited)} rounds, slowest {max(waited):.3f} s")


def _memory(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(field)


@contextlib.contextmanager
def attacked(*, clusters: tuple[str, ...] = (), **settings: Any) -> Iterator[Target]:
    """A server in a process of its own, opened with these Settings."""
    token, other = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])}
    command = [sys.executable, "-m", "tests.bad_inputs.apiserver.serving"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, cwd=_ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        options = {"tokens": [token, other], "clusters": clusters, "settings": settings}
        process.stdin.write(json.dumps(options) + "\n")
        process.stdin.flush()
        said = process.stdout.readline()
        assert said, "the server did not start; its error output says why"
        try:
            where = json.loads(said)
            yield Target(process, where["port"], where["ca"], token, other)
            assert process.poll() is None, "the server has ended"
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Fails the test when the server does not stop by itself; its error output then says where it was."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGUSR1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)  # it goes on after it has said where it is; nothing else ends it
        process.kill()
        raise AssertionError(f"the server did not stop within {PATIENCE:.0f} s") from None
