"""The proof that acknowledged events arrive: a sender, a receiver and a sink as processes, and kills of the latter two.

The sender repeats each request until it is acknowledged, as kube-apiserver does. Whatever was acknowledged must have
arrived at the end, byte for byte; events may arrive twice.
"""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import aiohttp
from tests.apiserver.store.etcdserver import free_port
from tests.domains.garden.audit.proof.events import event_list
from tests.domains.garden.audit.proof.sinkprocess import ALTERED
from tests.kube.certificates import issue

from hortus.domains.garden.audit.buffer.spool import HashChain, Verification, verify
from hortus.kube import yaml
from hortus.kube.secret import Secret
from hortus.kube.tls import client_context

_RECEIVER = "import sys; from pathlib import Path; from hortus.domains.garden.audit.buffer.program import serve; "
_SENDERS = 16
_PAUSE = 0.05
"""Seconds between two attempts of a request. kube-apiserver waits for 10."""


class Proof(NamedTuple):
    """The result of a run."""

    events: int
    missing: int
    twice: int
    kills: dict[str, int]
    seconds: float
    """Until all had arrived."""
    acknowledged: float
    """Seconds until all were acknowledged."""
    bytes: int
    verification: Verification


class _Process:
    """A process that is started again after each kill."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def kill(self) -> None:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"{self._log} ended by itself: {self._log.read_text()[-2000:]}")
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def end(self) -> int:
        """Asks the process to end; returns its code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.terminate()
        return self._process.wait(60)


class ProofRun:
    """One run in `folder` with `count` events, in requests of `each`."""

    def __init__(self, folder: Path, count: int, *, each: int, seed: int = 1, sync: str = "always") -> None:
        self._folder = folder
        self._count = count
        self._each = each
        self._random = random.Random(seed)
        self._counts = folder / "counts"
        self._port, self._sink_port = free_port(), free_port()
        self._next = 0
        self.acknowledged = 0
        self.bytes = 0
        self._context = self._files(sync)
        self._receiver = _Process(
            [sys.executable, "-c", f"{_RECEIVER}sys.exit(serve(Path(sys.argv[1])))", str(folder / "receiver.yaml")],
            folder / "receiver.log",
        )
        module = "tests.domains.garden.audit.proof.sinkprocess"
        self._sink = _Process(
            [sys.executable, "-m", module, str(self._sink_port), str(self._counts)], folder / "sink.log"
        )

    def _files(self, sync: str) -> object:
        folder = self._folder
        folder.mkdir(parents=True, exist_ok=True)
        with self._counts.open("wb") as file:
            file.truncate(self._count)
        ca = issue("ca", ca=True)
        server, client = issue("receiver", ca, addresses=("127.0.0.1",)), issue("kube-apiserver", ca)
        (folder / "ca.crt").write_bytes(ca.pem)
        (folder / "tls.crt").write_bytes(server.pem)
        (folder / "tls.key").write_bytes(server.key_pem)
        (folder / "chain.key").write_bytes(b"0123456789abcdef" * 4)
        document = {
            "listen": f"127.0.0.1:{self._port}",
            "metrics": "0",
            "mode": "blocking-strict",
            "tls": {"certificateFile": "tls.crt", "keyFile": "tls.key", "clientCAFile": "ca.crt"},
            "spool": {
                "folder": "spool",
                "keyFile": "chain.key",
                "sync": sync,
                "maxBytes": "4Gi",
                "segmentBytes": "64Mi",
                "retainBytes": "512Mi",
            },
            "sinks": [{"name": "proof", "batchBytes": "8Mi", "http": {"url": f"http://127.0.0.1:{self._sink_port}/"}}],
        }
        (folder / "receiver.yaml").write_text(yaml.dump(document))
        return client_context(ca=ca.pem, certificate=client.pem, key=Secret(client.key_pem.decode()))

    async def run(self, kills: int) -> Proof:
        """Sends all events, with `kills` spread over them, and waits until all have arrived."""
        self._sink.start()
        self._receiver.start()
        began = time.monotonic()
        try:
            killing = asyncio.create_task(self._kill(kills))
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
                await asyncio.gather(*(self._send(session) for _ in range(_SENDERS)))
            acknowledged = time.monotonic() - began
            killed = await killing
            await self._arrived()
            seconds = time.monotonic() - began
        finally:
            codes = self._receiver.end(), self._sink.end()
        assert ALTERED not in codes, (self._folder / "sink.log").read_text()
        content = self._counts.read_bytes()
        found = verify(self._folder / "spool", HashChain((self._folder / "chain.key").read_bytes()))
        missing, once = content.count(0), content.count(1)
        return Proof(
            self._count, missing, self._count - missing - once, killed, seconds, acknowledged, self.bytes, found
        )

    async def _send(self, session: aiohttp.ClientSession) -> None:
        url = f"https://127.0.0.1:{self._port}/audit"
        while self._next < self._count:
            first = self._next
            end = self._next = min(first + self._each, self._count)
            body = event_list(first, end)
            while not await self._acknowledged(session, url, body):
                await asyncio.sleep(_PAUSE)  # a receiver that was killed is down for a while
            self.acknowledged += end - first
            self.bytes += len(body)

    async def _acknowledged(self, session: aiohttp.ClientSession, url: str, body: bytes) -> bool:
        with suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with session.post(url, data=body, ssl=self._context) as answer:
                return answer.status == 200
        return False

    async def _kill(self, kills: int) -> dict[str, int]:
        """Kills at even shares of the events: the receiver, the sink, and both, in turn."""
        killed = {"receiver": 0, "sink": 0, "both": 0}
        for number in range(kills):
            due = self._count * (number + self._random.random()) / (kills + 1)
            while self.acknowledged < due:
                await asyncio.sleep(0.01)  # the senders, on this loop, make the progress
            name = ("receiver", "sink", "both")[number % 3]
            victims = {"receiver": [self._receiver], "sink": [self._sink], "both": [self._receiver, self._sink]}[name]
            for victim in victims:
                victim.kill()
            await asyncio.sleep(self._random.random() * 0.5)  # the outage itself: events arrive meanwhile
            for victim in victims:
                victim.start()
            killed[name] += 1
        return killed

    async def _arrived(self) -> None:
        """Waits until the sink has every event, as long as more arrive."""
        last, since = -1, time.monotonic()
        while missing := self._counts.read_bytes().count(0):
            if missing != last:
                last, since = missing, time.monotonic()
            if time.monotonic() - since > 120:
                return
            await asyncio.sleep(0.1)  # another process writes the counts to a file
