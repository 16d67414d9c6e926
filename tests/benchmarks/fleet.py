"""A whole `hortus up`: many GardenerClusters created at once, until all are Ready, and then at rest.

Everything is real: three processes, TLS, SQLite with durable writes, a kubeconfig fetched from the simulated garden for
each cluster, tried against its workload cluster and stored. Figures of the controllers come from their process and
their metrics, writes from the API server's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import uvloop
from tests.benchmarks.credentials import cluster
from tests.simulation.shoots import small_shoot

from hortus.cli.up.state import RunFile, StateDirectory
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube import Client
from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import SHOOTS

_ROOT = Path(__file__).resolve().parents[2]
_WRITES = ("CREATE", "UPDATE", "PATCH", "DELETE", "POST", "PUT", "APPLY", "DELETECOLLECTION")
PARALLEL = 32
PATIENCE = 1800.0
"""Seconds until a step that does not end is given up."""

Figures = dict[str, float]


@contextmanager
def fleet_of(folder: Path, metrics_port: int) -> Iterator[RunFile]:
    """`hortus up` on a state directory of its own, with a garden whose operations take no time."""
    config = folder / "up.yaml"
    config.write_text(
        "simulation: {create_duration: 0.01, schedule_delay: 0, care_period: 0.01, nodes: false}\n"
        f"controllers: {{metrics-bind-address: '127.0.0.1:{metrics_port}'}}\n"
    )
    state = StateDirectory(folder / "state")
    command = [sys.executable, "-m", "hortus", "up", "--state-dir", str(state.path), "--port", "0"]
    with subprocess.Popen([*command, "--clusters", "0", "--config", str(config)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if b"Ctrl-C stops it" in line:
                break
        run = state.run()
        assert run is not None, "hortus up did not come up"
        try:
            yield run
        finally:
            child.send_signal(signal.SIGTERM)
            child.communicate()


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found.group(1)) / 1024


def peak_mib(pid: int) -> float:
    """The most memory that was ever resident."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found.group(1)) / 1024


def kib_moved(pid: int) -> float:
    """The bytes that a process has read and written so far, sockets and files, TLS as on the wire."""
    fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return (int(fields["rchar"]) + int(fields["wchar"])) / 1024


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def controller_calls(port: int) -> float:
    """Calls the controllers made so far, watches and all."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        text = await answer.text()
    return sum(float(value) for value in re.findall(r"^rest_client_requests_total\{.*?\} (\S+)$", text, re.M))


async def server_writes(client: Client) -> float:
    """Write requests the API server has answered so far, of everybody."""
    text = (await client.request("GET", "/metrics", accept="text/plain")).body.decode()
    found = re.findall(r'^apiserver_request_total\{.*?verb="(\w+)".*?\} (\S+)$', text, re.M)
    return sum(float(value) for verb, value in found if verb.upper() in _WRITES)


def shoot(number: int) -> Object:
    made = small_shoot("demo", number)
    made["metadata"] = {"name": f"bench-{number}", "namespace": "garden-demo"}
    return made


async def _each(count: int, step: object) -> None:
    assert callable(step)
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await step(number)

    await asyncio.gather(*(work() for _ in range(PARALLEL)))


@asynccontextmanager
async def _counted(client: Client, resource: object, count: int, ready: object) -> AsyncIterator[None]:
    """Return from the block only when `count` objects are seen to be `ready`."""
    assert callable(ready)
    done: set[str] = set()

    async def seen() -> None:
        # From the beginning on: the server keeps a window of events, and a large fleet makes more than that.
        async with contextlib.aclosing(client.watch(resource, initial_events=True)) as watch:  # type: ignore[arg-type]
            async for event in watch:
                if event.type in ("ADDED", "MODIFIED") and ready(event.object):
                    done.add(event.object["metadata"]["name"])
                    if len(done) == count:
                        return

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(seen())
        yield


async def measure(run: RunFile, state: StateDirectory, metrics_port: int, count: int, rest: float) -> Figures:
    pid = run.processes["controllers"]
    async with (
        Client.from_kubeconfig(state.kubeconfig) as client,
        Client.from_kubeconfig(state.garden_kubeconfig) as garden,
    ):
        built = time.perf_counter()
        async with _counted(garden, SHOOTS, count, _built):
            await _each(count, lambda number: garden.create(SHOOTS, shoot(number)))
        built = time.perf_counter() - built
        cpu, calls, wall = cpu_seconds(pid), await controller_calls(metrics_port), time.perf_counter()
        server, moved = cpu_seconds(run.processes["apiserver"]), kib_moved(pid)
        async with _counted(client, GARDENER_CLUSTERS, count, _ready):
            await _each(count, lambda number: client.create(GARDENER_CLUSTERS, cluster(number)))
        wall, cpu = time.perf_counter() - wall, cpu_seconds(pid) - cpu
        server, moved = cpu_seconds(run.processes["apiserver"]) - server, kib_moved(pid) - moved
        calls = await controller_calls(metrics_port) - calls
        figures = {
            "clusters": count,
            "shoots_built_per_s": count / built,
            "ready_per_s": count / wall,
            "seconds_to_all_ready": wall,
            "controller_cpu_ms_per_cluster": cpu / count * 1000,
            "controller_calls_per_cluster": calls / count,
            "controller_kib_per_cluster": moved / count,
            "apiserver_cpu_ms_per_cluster": server / count * 1000,
            "controller_rss_mib": resident_mib(pid),
            "controller_peak_mib": peak_mib(pid),
            "apiserver_rss_mib": resident_mib(run.processes["apiserver"]),
        }
        writes, resting = await server_writes(client), cpu_seconds(pid)
        await asyncio.sleep(rest)
        figures["rest_seconds"] = rest
        figures["writes_at_rest"] = await server_writes(client) - writes
        figures["controller_cpu_percent_at_rest"] = (cpu_seconds(pid) - resting) / rest * 100
    return figures


def _built(found: Object) -> bool:
    status = found.get("status") or {}
    good = {condition["status"] for condition in status.get("conditions") or ()} == {"True"}
    healthy = (found["metadata"].get("labels") or {}).get("shoot.gardener.cloud/status") == "healthy"
    return good and healthy and status["lastOperation"]["state"] == "Succeeded"


def _ready(found: Object) -> bool:
    return (found.get("status") or {}).get("state") == "Ready"


def run(*, count: int = 1000, rest: float = 60.0) -> dict[str, Figures]:
    with tempfile.TemporaryDirectory(dir=_ROOT, prefix=".bench-") as scratch, contextlib.ExitStack() as stack:
        port, folder = free_port(), Path(scratch)
        running = stack.enter_context(fleet_of(folder, port))
        state = StateDirectory(folder / "state")
        return {"fleet": uvloop.run(measure(running, state, port, count, rest))}


if __name__ == "__main__":
    amount = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(json.dumps(run(count=amount, rest=float(sys.argv[2]) if len(sys.argv) > 2 else 60.0), indent=2))
