"""`hortus top` over 5,000 clusters: one print, the first full screen, a screen at rest, and one under changes.

Each cluster is a Runtime with its GardenerCluster and its kubeconfig Secret, all well but one in fifty. The processor
time and memory are those of the `hortus` process; the API server is in this one.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from pathlib import Path

import uvloop
from tests.benchmarks.fleet import cpu_seconds, resident_mib
from tests.cli.conftest import CRDS, NAMESPACES
from tests.cli.terminals import Terminal, program
from tests.cli.test_actions import runtime, wait_served
from tests.scenarios.running import environment

from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster, Label
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import Client
from hortus.kube.objects import Object, format_time
from hortus.schema import crd
from hortus.testing.apiserver import running_apiserver

COUNT = 5000
PLACE = "kcp-system"
REST = 20.0
"""Seconds of the screen at rest."""
RATE = 50
"""Changes of status a second, for as many seconds."""


def run() -> dict[str, dict[str, float]]:
    return uvloop.run(_measure())


async def _measure() -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
            await _fill(client)
            path = Path(folder) / "kubeconfig"
            path.write_bytes(server.kubeconfig.read_bytes())
            printed = await asyncio.to_thread(_printed, path)
            loop = asyncio.get_running_loop()
            screen = await asyncio.to_thread(
                _screen, path, lambda: asyncio.run_coroutine_threadsafe(_churn(client), loop)
            )
            return {"one print": printed, "a screen": screen}


def _printed(path: Path) -> dict[str, float]:
    began = time.perf_counter()
    done = subprocess.Popen(
        program("top", "--kubeconfig", str(path)), stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert done.stdout is not None
    lines = len(done.stdout.read().splitlines())
    _, _, used = os.wait4(done.pid, 0)
    assert lines == COUNT + 1
    return {
        "seconds": time.perf_counter() - began,
        "processor time, s": used.ru_utime + used.ru_stime,
        "peak memory, MiB": used.ru_maxrss / 1024,
    }


def _screen(path: Path, churn) -> dict[str, float]:
    began = time.perf_counter()
    shown = Terminal(program("top", "--kubeconfig", str(path)), width=120, height=40, env=environment(TERM="xterm"))
    try:
        shown.until(
            lambda lines: len(lines) > 1 and f"{COUNT:,} Runtimes" in lines[1] and "reading" not in lines[1], "all"
        )
        figures = {"full after, s": time.perf_counter() - began}
        pid = shown.process.pid
        before, end = cpu_seconds(pid), time.monotonic() + REST
        while time.monotonic() < end:
            shown._read(0.5)
        figures["at rest, % of a core"] = (cpu_seconds(pid) - before) / REST * 100
        before, started = cpu_seconds(pid), time.monotonic()
        work = churn()
        while not work.done():
            shown._read(0.1)
        work.result()
        took = time.monotonic() - started
        figures["changes a second"] = RATE * RATE / took
        figures["under changes, % of a core"] = (cpu_seconds(pid) - before) / took * 100
        figures["memory, MiB"] = resident_mib(pid)
        shown.type("q")
        assert shown.ended() == 0
        return figures
    finally:
        shown.close()


async def _fill(client: Client) -> None:
    for kind in (Runtime, GardenerCluster):
        await client.apply(CRDS, crd(kind), field_manager="bench")
    await wait_served(client)
    await client.create(NAMESPACES, {"metadata": {"name": PLACE}})
    limit = asyncio.Semaphore(32)

    async def one(number: int) -> None:
        async with limit:
            await _cluster(client, number)

    async with asyncio.TaskGroup() as group:
        for number in range(COUNT):
            group.create_task(one(number))


async def _cluster(client: Client, number: int) -> None:
    name, failed = f"c-{number:05}", number % 50 == 0
    labels = {Label.RUNTIME_ID: name, Label.SHOOT_NAME: name}
    made = runtime(name)
    made["metadata"]["labels"] = labels
    await client.create(RUNTIMES, made)
    await client.patch(
        RUNTIMES, name, {"status": _status("GardenerErr" if failed else "")}, PLACE, subresource="status"
    )
    secret = {"name": f"kubeconfig-{name}", "namespace": PLACE, "key": "config"}
    await client.create(
        GARDENER_CLUSTERS,
        {
            "apiVersion": GARDENER_CLUSTERS.api_version,
            "kind": GARDENER_CLUSTERS.kind,
            "metadata": {"name": name, "namespace": PLACE, "labels": labels},
            "spec": {"shoot": {"name": name}, "kubeconfig": {"secret": secret}},
        },
    )
    await client.patch(
        GARDENER_CLUSTERS, name, {"status": {"state": "Ready", "conditions": []}}, PLACE, subresource="status"
    )
    expires = {"credentials.hortus.dev/expiration": format_time(time.time() + 86400)}
    metadata = {"name": secret["name"], "namespace": PLACE, "labels": labels, "annotations": expires}
    await client.create(SECRETS, {"metadata": metadata, "data": {"config": "QUFB" * 1000}})


def _status(reason: str) -> Object:
    condition = {
        "type": "Provisioned",
        "status": "False" if reason else "True",
        "reason": reason or "ShootCreationCompleted",
        "message": "The garden refused." if reason else "Shoot created",
        "lastTransitionTime": format_time(time.time()),
    }
    return {"state": "Failed" if reason else "Ready", "provisioningCompleted": True, "conditions": [condition]}


async def _churn(client: Client) -> None:
    for turn in range(RATE):
        began = time.monotonic()
        for number in range(RATE):
            status = {"status": _status("GardenerErr" if turn % 2 else "")}
            await client.patch(RUNTIMES, f"c-{number + 1:05}", status, PLACE, subresource="status")
        await asyncio.sleep(max(0.0, 1 - (time.monotonic() - began)))
