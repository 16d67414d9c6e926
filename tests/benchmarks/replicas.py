"""One replica compared with two that share the objects, on one API server and two cores.

Two replicas gain the processor time that one core lacks. The job costs 10 ms of computing for each object, as rendering
does, and one write; the API server needs a few tenths of that for the same object, on the same two cores. The figures
show where the processor time went; all of it divided by two cores is the best time that is possible.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uvloop
from tests.benchmarks.credentials import NAMESPACE, cluster, emptied, make_namespace, server
from tests.benchmarks.fleet import cpu_seconds
from tests.benchmarks.trivial.contest import STATUS

from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube import Client

_ROOT = Path(__file__).resolve().parents[2]
Figures = dict[str, dict[str, float]]


def _start(kubeconfig: Path, cost: float) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])}
    command = [sys.executable, "-m", "tests.benchmarks.trivial.shared", str(kubeconfig), str(cost)]
    pipe = subprocess.PIPE
    made = subprocess.Popen(command, env=environment, cwd=_ROOT, stdin=pipe, stdout=pipe, stderr=None, text=True)
    assert made.stdout is not None
    while (line := made.stdout.readline()) != "ready\n":
        if not line:
            raise RuntimeError("a replica ended before it was ready")
    return made


def _report(replica: subprocess.Popen[str]) -> dict[str, float]:
    """The report that a replica logs at its end."""
    lines = replica.communicate("")[0].splitlines()
    found: dict[str, float] = json.loads(next(line for line in lines if line.startswith('{"objects"')))
    return found


async def _work(kubeconfig: Path, count: int) -> float:
    """Create the objects; seconds until all have their status."""
    async with Client.from_kubeconfig(kubeconfig) as client:
        listed = await client.list(GARDENER_CLUSTERS, NAMESPACE)
        done: set[str] = set()

        async def watch() -> None:
            events = client.watch(GARDENER_CLUSTERS, NAMESPACE, resource_version=listed.resource_version)
            async with contextlib.aclosing(events):
                async for event in events:
                    if event.object.get("status") == STATUS:
                        done.add(event.object["metadata"]["name"])
                        if len(done) == count:
                            return

        watching = asyncio.create_task(watch())
        began = time.perf_counter()
        numbers = iter(range(count))

        async def create() -> None:
            for number in numbers:
                await client.create(GARDENER_CLUSTERS, cluster(number))

        await asyncio.gather(*(create() for _ in range(16)))
        await watching
        return time.perf_counter() - began


def with_replicas(replicas: int, *, count: int, cost: float) -> dict[str, float]:
    """`count` objects that cost `cost` ms each, by so many replicas."""
    with tempfile.TemporaryDirectory(dir=_ROOT, prefix=".bench-") as folder, server(Path(folder)) as (kubeconfig, pid):
        uvloop.run(make_namespace(kubeconfig))
        running = [_start(kubeconfig, cost) for _ in range(replicas)]
        serving = cpu_seconds(pid)
        wall = uvloop.run(_work(kubeconfig, count))
        serving = cpu_seconds(pid) - serving
        reports = [_report(one) for one in running]
        working = sum(report["cpu_s"] for report in reports)
        figures = {
            "objects_per_s": count / wall,
            "replicas_cpu_ms_per_object": working / count * 1000,
            "apiserver_cpu_ms_per_object": serving / count * 1000,
            "largest_share_percent": max(report["objects"] for report in reports) / count * 100,
            "cores_busy": (working + serving) / wall,
        }
        uvloop.run(emptied(kubeconfig))
        return figures


def run(*, count: int = 1500, cost: float = 10.0) -> Figures:
    one, two = (with_replicas(replicas, count=count, cost=cost) for replicas in (1, 2))
    return {
        "one replica": one,
        "two replicas": two,
        "ratio": {"two_times_one": two["objects_per_s"] / one["objects_per_s"]},
    }


if __name__ == "__main__":
    print(json.dumps(run(count=int(sys.argv[1]) if len(sys.argv) > 1 else 1500), indent=2))
