"""Runtimes at once: a whole fleet of clusters grown from nothing on the simulated garden, and at rest afterwards.

Each operation of the garden takes a second, so what goes beyond is ours or the server's. Calls are those of the
controllers to all servers together: management cluster, garden and workload clusters share one here.

`python -m tests.benchmarks.runtimes 1000` for another size.
"""

from __future__ import annotations

import asyncio
import copy
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop
from tests.benchmarks.fleet import PATIENCE, controller_calls, cpu_seconds, free_port, server_writes
from tests.scenarios.running import UP, up

from hortus.domains.clusters.types import RUNTIMES
from hortus.kube import Client, yaml
from hortus.kube.objects import Object

_EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "runtimes" / "aws.yaml"
NAMESPACE = "kcp-system"
OPERATION = 1.0
REST = 30.0

Figures = dict[str, dict[str, float]]


def runtime(number: int) -> Object:
    found: Object = copy.deepcopy(yaml.load(_EXAMPLE.read_bytes()))
    name = f"r-{number}"
    found["metadata"]["name"] = found["spec"]["shoot"]["name"] = name
    found["metadata"]["labels"]["kyma-project.io/runtime-id"] = name
    found["spec"]["shoot"]["provider"]["workers"][0]["minimum"] = 1
    return found


async def _grow(client: Client, count: int) -> float:
    """Seconds from the first creation until all are Ready."""
    began, ready = time.perf_counter(), set()
    since = (await client.list(RUNTIMES, NAMESPACE, limit=1)).resource_version
    numbers = iter(range(count))

    async def make() -> None:
        for number in numbers:
            await client.create(RUNTIMES, runtime(number))

    async def follow() -> None:
        async with client.watch(RUNTIMES, NAMESPACE, resource_version=since) as events:
            async for event in events:
                if (event.object.get("status") or {}).get("state") == "Ready":
                    ready.add(event.object["metadata"]["name"])
                    if len(ready) == count:
                        return

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(follow(), *(make() for _ in range(16)))
    return time.perf_counter() - began


async def _measure(kubeconfig: Path, pid: int, port: int, count: int, rest: float) -> Figures:
    async with Client.from_kubeconfig(kubeconfig) as client:
        cpu, calls = cpu_seconds(pid), await controller_calls(port)
        wall = await _grow(client, count)
        await asyncio.sleep(3)
        cpu, calls = cpu_seconds(pid) - cpu, await controller_calls(port) - calls
        writes, asked = await server_writes(client), await controller_calls(port)
        await asyncio.sleep(rest)
        return {
            "grown": {
                "runtimes": count,
                "seconds": wall,
                "seconds_over_the_operation": wall - OPERATION,
                "controller_cpu_ms_per_runtime": cpu / count * 1000,
                "controller_calls_per_runtime": calls / count,
            },
            "at_rest": {
                "seconds": rest,
                "writes": await server_writes(client) - writes,
                "controller_calls": await controller_calls(port) - asked,
            },
        }


def run(*, count: int = 100, rest: float = REST) -> Figures:
    """Figures of `count` Runtimes created at once, then of `rest` seconds in which nothing happens."""
    port = free_port()
    config: dict[str, Any] = {
        "simulation": {
            "schedule_delay": 0,
            "create_duration": OPERATION,
            "progress_period": OPERATION,
            "care_period": 1,
        },
        "controllers": {"metrics-bind-address": f"127.0.0.1:{port}"},
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        up(Path(folder) / "state", "--clusters", "0", "--ephemeral", config=config) as fleet,
    ):
        fleet.expect(UP)
        pid = fleet.processes()["controllers"]
        return uvloop.run(_measure(fleet.kubeconfig, pid, port, count, rest))


if __name__ == "__main__":
    print(run(count=int(sys.argv[1]) if len(sys.argv) > 1 else 100))
