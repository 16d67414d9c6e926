"""Live migrations in a simulated garden, all at once: the cost of one must not depend on how many there are.

The members of etcd are simulated and need as long as real ones; all else is real: Shoots in an API server, and the
coordinator with its cache, its queue and its reports. API server and coordinator are threads of this process.

`python -m tests.benchmarks.migrations 500 2000` for other sizes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import uvloop
from tests.benchmarks.fleet import resident_mib
from tests.simulation.garden import NAMESPACE, NAMESPACES, started_garden
from tests.simulation.shoots import small_shoot

from hortus.domains.garden.migration.coordinator import add_coordinator
from hortus.engine import Manager
from hortus.gardener.livemigration import LIVE_MIGRATE
from hortus.kube import Client
from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import SHOOTS
from hortus.simulation.garden.livemigration.planes import SimulatedPlanes
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer

SIZES = (125, 500, 2000)
_ROOT = Path(__file__).resolve().parents[2]
_OLD, _NEW = "aws-1", "aws-2"
_CALLERS = 16
_PATIENCE = 900.0


class Requests:
    """The requests of the coordinator by method."""

    def __init__(self) -> None:
        self.methods: Counter[str] = Counter()

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.methods[method] += 1


def _shoot(number: int) -> Object:
    shoot = small_shoot("demo", 0)
    shoot["metadata"] = {"name": f"moving-{number:05}", "namespace": NAMESPACE}
    shoot["spec"] |= {"seedName": _OLD, "controlPlane": {"highAvailability": {"failureTolerance": {"type": "node"}}}}
    return shoot


async def _each(client: Client, count: int, patch: Object, subresource: str = "") -> None:
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            name = str(_shoot(number)["metadata"]["name"])
            await client.patch(SHOOTS, name, patch, NAMESPACE, subresource=subresource)

    await asyncio.gather(*(work() for _ in range(_CALLERS)))


async def _create(client: Client, count: int) -> None:
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await client.create(SHOOTS, _shoot(number))

    await asyncio.gather(*(work() for _ in range(_CALLERS)))
    operation = {"type": "Create", "state": "Succeeded", "progress": 100, "description": "done"}
    await _each(client, count, {"status": {"seedName": _OLD, "lastOperation": operation}}, "status")


def _await_all(server: TestServer, count: int, ends: list[float]) -> None:
    """Ask for all migrations and note the time of each end; a thread of its own, so that it is no time of theirs."""

    async def watch() -> None:
        async with Client.from_kubeconfig(server.kubeconfig_for("garden")) as client:
            version = (await client.list(SHOOTS, NAMESPACE)).resource_version
            asking = asyncio.create_task(
                _each(client, count, {"metadata": {"annotations": {LIVE_MIGRATE: "true"}}, "spec": {"seedName": _NEW}})
            )
            moved: set[str] = set()
            async with asyncio.timeout(_PATIENCE):
                async for event in client.watch(SHOOTS, NAMESPACE, resource_version=version):
                    if event.type == "MODIFIED" and event.object["status"].get("seedName") == _NEW:
                        name = event.object["metadata"]["name"]
                        if name not in moved:
                            moved.add(name)
                            ends.append(time.perf_counter())
                    if len(moved) == count:
                        break
            await asking

    uvloop.run(watch())


async def _measure(server: TestServer, count: int) -> dict[str, float]:
    requests, settings = Requests(), GardenSettings()
    kubeconfig = server.kubeconfig_for("garden")
    async with Client.from_kubeconfig(kubeconfig) as client:
        await _create(client, count)
    async with Client.from_kubeconfig(kubeconfig, observer=requests) as client:
        manager = Manager(client)
        add_coordinator(manager, client=client, planes=SimulatedPlanes(settings, manager.clock))
        async with manager.running():
            ends: list[float] = []
            memory, began = resident_mib(os.getpid()), time.perf_counter()
            cpu, whole = time.thread_time(), time.process_time()
            requests.methods.clear()
            asking = threading.Thread(target=_await_all, args=(server, count, ends), name="asking")
            asking.start()
            await asyncio.to_thread(asking.join)
            cpu, whole = time.thread_time() - cpu, time.process_time() - whole
    return {
        "moved": len(ends),
        "seconds_to_first": min(ends) - began,
        "seconds_to_all": max(ends) - began,
        "coordinator_cpu_ms_per_migration": cpu * 1000 / count,
        "all_cpu_ms_per_migration": whole * 1000 / count,
        "coordinator_requests_per_migration": requests.methods.total() / count,
        "more_memory_mib": resident_mib(os.getpid()) - memory,
    }


def _child(count: int) -> None:
    with started_garden(GardenSettings()) as server:
        print(json.dumps(uvloop.run(_measure(server, count))))


def run(sizes: tuple[int, ...] = SIZES) -> dict[str, Any]:
    found = {}
    for count in sizes:
        command = [sys.executable, "-m", "tests.benchmarks.migrations", "--child", str(count)]
        ended = subprocess.run(command, cwd=_ROOT, check=True, stdout=subprocess.PIPE)
        found[f"{count} migrations"] = json.loads(ended.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--child", type=int)
    asked = parser.parse_args()
    if asked.child:
        _child(asked.child)
    else:
        print(json.dumps(run(tuple(asked.sizes)), indent=2))


if __name__ == "__main__":
    main()
