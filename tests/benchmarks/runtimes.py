"""A whole `hortus up`: many Runtimes created at once, until all are Ready, and then at rest.

Operations of the simulated garden take one second, its clusters have nodes. The ideal is what nobody can beat: one
operation, as if all were carried out at the same time and nothing else took any. Figures of the controllers come from
their process and their metrics, requests to the garden from the API server's metrics by what is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import uvloop
from tests.benchmarks.fleet import PATIENCE, Figures, _counted, _each, cpu_seconds, resident_mib, server_writes

from hortus.cli.up.state import RunFile, StateDirectory, metrics_socket
from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube import Client, yaml
from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import LOGICAL_CLUSTERS, SHOOTS

_ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "kcp-system"
OPERATION = 1.0
"""Seconds."""
_EXAMPLES = tuple(sorted((_ROOT / "examples/runtimes").glob("*.yaml")))
_GARDEN_KINDS = ("shoots", "seeds", "cloudprofiles", "secretbindings")


@contextmanager
def landscape(folder: Path) -> Iterator[RunFile]:
    """`hortus up` on a state directory of its own."""
    config = folder / "up.yaml"
    config.write_text(
        f"simulation: {{create_duration: {OPERATION}, reconcile_duration: {OPERATION}, delete_duration: {OPERATION}, "
        "schedule_delay: 0, progress_period: 0.5, care_period: 0.1, workers: 200}\n"
        "controllers: {runtime-ctrl-workers-cnt: 100}\n"
    )
    with running(folder, config) as run:
        yield run


@contextmanager
def running(folder: Path, config: Path, *, port: int = 0) -> Iterator[RunFile]:
    """`hortus up` without clusters to begin with; its state is in `folder`/state."""
    state = StateDirectory(folder / "state")
    command = [sys.executable, "-m", "hortus", "up", "--state-dir", str(state.path), "--port", str(port)]
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


def runtime(number: int) -> Object:
    """One of the examples, providers in turn, under a name of its own."""
    made: Object = yaml.load(_EXAMPLES[number % len(_EXAMPLES)].read_text())
    name = f"bench-{number}"
    made["metadata"]["name"] = name
    made["metadata"]["labels"] |= {"kyma-project.io/runtime-id": name, "operator.kyma-project.io/kyma-name": name}
    made["spec"]["shoot"]["name"] = name
    return made


async def controller_calls(state: StateDirectory) -> float:
    """Requests that the controllers sent so far, watches and all, to whatever cluster."""
    connector = aiohttp.UnixConnector(path=str(metrics_socket(state, 0)))
    async with aiohttp.ClientSession(connector=connector) as session, session.get("http://localhost/metrics") as answer:
        text = await answer.text()
    return sum(float(value) for value in re.findall(r"^rest_client_requests_total\{.*?\} (\S+)$", text, re.M))


async def garden_requests(client: Client) -> float:
    """Requests for kinds of the garden that the API server answered so far, of everybody."""
    text = (await client.request("GET", "/metrics", accept="text/plain")).body.decode()
    found = re.findall(r'^apiserver_request_total\{.*?resource="(\w+)".*?\} (\S+)$', text, re.M)
    return sum(float(value) for kind, value in found if kind in _GARDEN_KINDS)


async def measure(run: RunFile, state: StateDirectory, count: int, rest: float) -> Figures:
    processes = {name: run.processes[name] for name in ("controllers", "simulation", "apiserver")}
    async with (
        Client.from_kubeconfig(state.kubeconfig) as client,
        Client.from_kubeconfig(state.garden_kubeconfig) as garden,
    ):
        own = await _logical_clusters(client)
        before = {name: cpu_seconds(pid) for name, pid in processes.items()}
        calls, load, began = await controller_calls(state), os.getloadavg()[0], time.perf_counter()
        async with _counted(client, RUNTIMES, count, _ready):
            await _each(count, lambda number: client.create(RUNTIMES, runtime(number)))
        wall = time.perf_counter() - began
        spent = {name: cpu_seconds(pid) - before[name] for name, pid in processes.items()}
        figures = {
            "runtimes": count,
            "load_of_the_machine_before": load,
            "seconds_to_all_ready": wall,
            "seconds_over_the_ideal": wall - OPERATION,
            "controller_calls_per_runtime": (await controller_calls(state) - calls) / count,
            **{f"{name}_cpu_ms_per_runtime": seconds / count * 1000 for name, seconds in spent.items()},
            **{f"{name}_rss_mib": resident_mib(pid) for name, pid in processes.items()},
        }
        figures |= await _at_rest(client, state, processes["controllers"], rest)
        figures["seconds_to_all_gone"] = await _remove(client, garden, count)
        assert await _logical_clusters(client) == own, "the clusters of the shoots are gone"
    return figures


async def _logical_clusters(client: Client) -> set[str]:
    return {found["metadata"]["name"] for found in (await client.list(LOGICAL_CLUSTERS)).items}


async def _at_rest(client: Client, state: StateDirectory, pid: int, rest: float) -> Figures:
    """Begins when the last events of the growth are sent, which are held to a rate."""
    until_quiet = await _until_quiet(client)
    writes, asked, calls, cpu = (
        await server_writes(client),
        await garden_requests(client),
        await controller_calls(state),
        cpu_seconds(pid),
    )
    await asyncio.sleep(rest)
    return {
        "seconds_until_quiet": until_quiet,
        "rest_seconds": rest,
        "writes_at_rest": await server_writes(client) - writes,
        "controller_calls_at_rest": await controller_calls(state) - calls,
        "garden_requests_per_hour_at_rest": (await garden_requests(client) - asked) / rest * 3600,
        "controller_cpu_percent_at_rest": (cpu_seconds(pid) - cpu) / rest * 100,
    }


async def _until_quiet(client: Client) -> float:
    """Seconds until nobody wrote anything for five."""
    began, writes = time.perf_counter(), -1.0
    async with asyncio.timeout(PATIENCE):
        while (now := await server_writes(client)) != writes:
            writes = now
            await asyncio.sleep(5.0)
    return time.perf_counter() - began - 5.0


async def _remove(client: Client, garden: Client, count: int) -> float:
    """Delete all; what may be left behind is looked for afterwards."""
    began = time.perf_counter()
    async with _gone(client, count):
        await _each(count, lambda number: client.delete(RUNTIMES, f"bench-{number}", NAMESPACE))
    wall = time.perf_counter() - began
    assert (await garden.list(SHOOTS)).items == []
    assert (await client.list(GARDENER_CLUSTERS)).items == []
    return wall


@asynccontextmanager
async def _gone(client: Client, count: int) -> AsyncIterator[None]:
    since = (await client.list(RUNTIMES)).resource_version

    async def seen() -> None:
        # From the beginning on: the server keeps a window of events, and a large fleet makes more than that.
        left = count
        async with contextlib.aclosing(client.watch(RUNTIMES, resource_version=since)) as watch:
            async for event in watch:
                left -= event.type == "DELETED"
                if not left:
                    return

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(seen())
        yield


def _ready(found: Object) -> bool:
    return (found.get("status") or {}).get("state") == "Ready"


def run(*, count: int = 1000, rest: float = 60.0) -> dict[str, Figures]:
    with tempfile.TemporaryDirectory(dir=_ROOT, prefix=".bench-") as scratch, contextlib.ExitStack() as stack:
        folder = Path(scratch)
        found = stack.enter_context(landscape(folder))
        return {"runtimes": uvloop.run(measure(found, StateDirectory(folder / "state"), count, rest))}


if __name__ == "__main__":
    amount = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(json.dumps(run(count=amount, rest=float(sys.argv[2]) if len(sys.argv) > 2 else 60.0), indent=2))
