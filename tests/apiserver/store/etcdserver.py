"""One real etcd for the tests: `HORTUS_ETCD`, that of envtest (`KUBEBUILDER_ASSETS`) or `make oracles`, or on PATH."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tests.oracles.programs import find_assets

_PORTS = 12_000
"""Ports to choose from, below those of outgoing connections."""
_HEARTBEAT = 20
"""Milliseconds; a member that is alone becomes the leader after a few, so with etcd's 100 a start takes half a second
longer. No heartbeat of it can come too late, as nobody else waits for one."""
_given: set[int] = set()
"""Ports that were handed out: what listens on one may not have begun yet, or be about to come back."""


def find_etcd() -> str | None:
    named = os.environ.get("HORTUS_ETCD")
    assets = find_assets()
    return named or (assets and shutil.which("etcd", path=str(assets))) or shutil.which("etcd")


def free_port() -> int:
    """A port that nothing listens on, now or after a restart of what will.

    No outgoing connection gets it meanwhile, nor another test, be it of this process or of another worker of pytest.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = _PORTS // workers
    while True:
        port = _lowest_outgoing() - 1 - worker % workers * share - secrets.randbelow(share)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.add(port)
                return port


def _lowest_outgoing() -> int:
    ranges = Path("/proc/sys/net/ipv4/ip_local_port_range")
    return max(int(ranges.read_text().split()[0]) if ranges.exists() else 32768, 2 * _PORTS)


def _drain(log: IO[str], ready: threading.Event) -> None:
    for line in log:
        if "ready to serve client requests" in line or "serving client traffic" in line:
            ready.set()


@contextmanager
def running_etcd(
    binary: str, folder: Path, port: int, *, sync: bool = False, scheme: str = "http", more: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    """A member of its own with its data in `folder`; without syncs unless asked, as envtest runs it."""
    client, peer = f"{scheme}://127.0.0.1:{port}", f"http://127.0.0.1:{free_port()}"
    command = [binary, "--data-dir", str(folder), f"--unsafe-no-fsync={str(not sync).lower()}"]
    command += ["--listen-client-urls", client]
    command += ["--advertise-client-urls", client, "--listen-peer-urls", peer]
    command += ["--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]
    command += [f"--heartbeat-interval={_HEARTBEAT}", f"--election-timeout={10 * _HEARTBEAT}", *more]
    ready = threading.Event()
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        reader = threading.Thread(target=_drain, args=(process.stderr, ready))
        reader.start()
        try:
            assert ready.wait(60), f"{binary} did not become ready"
            yield process
        finally:
            process.kill()
            reader.join()


def pause(process: subprocess.Popen[str]) -> None:
    """Stop a child and return when all its threads stand: until then it may still answer."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
