"""Growth: 1,000, 5,000 and 20,000 GardenerClusters, each on a fleet of its own, and the largest started again.

What a cluster costs must not depend on how many there are: for each figure the largest fleet is compared with the
smallest. A restart must find everything as it is: the controllers are ended with SIGTERM and their supervisor starts
them again; steady is when each cluster has been looked at once and nothing waits.

`python -m tests.benchmarks.growth 1000 5000 --rest 600` for other sizes and a longer rest.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import uvloop
from tests.benchmarks import fleet
from tests.benchmarks.fleet import Figures, cpu_seconds, fleet_of, free_port, server_writes

from hortus.cli.up.state import RunFile, StateDirectory
from hortus.kube import Client

_ROOT = Path(__file__).resolve().parents[2]
SIZES = (1000, 5000, 20000)
LINEAR = ("controller_cpu_ms_per_cluster", "controller_calls_per_cluster", "controller_kib_per_cluster")
"""Figures that should be the same at every size; the time to all Ready is compared as clusters a second."""
CONTROLLER = "gardener-cluster-controller"


async def _controllers(port: int, name: str) -> float | None:
    """The sum of a metric of the controller; None while nobody answers."""
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            text = await answer.text()
    except aiohttp.ClientError:
        return None
    found = re.findall(rf'^{name}\{{[^}}]*controller="{CONTROLLER}"[^}}]*\}} (\S+)$', text, re.M)
    return sum(map(float, found))


async def restart(state: StateDirectory, port: int, count: int) -> Figures:
    """End the controllers and wait until those that come after them have looked at everything."""
    run = state.run()
    assert run is not None, "there is a fleet"
    async with Client.from_kubeconfig(state.kubeconfig) as client:
        writes = await server_writes(client)
        before = run.processes["controllers"]
        os.kill(before, signal.SIGTERM)
        began = time.perf_counter()
        async with asyncio.timeout(fleet.PATIENCE):
            while not await _steady(state, port, count, before):
                await asyncio.sleep(0.1)
        wall = time.perf_counter() - began
        run = state.run()
        assert run is not None, "it still runs"
        return {
            "restart_seconds": wall,
            "restart_cpu_s": cpu_seconds(run.processes["controllers"]),
            "restart_writes": await server_writes(client) - writes,
        }


async def _steady(state: StateDirectory, port: int, count: int, before: int) -> bool:
    run = state.run()
    if run is None or run.processes.get("controllers", before) == before:
        return False
    done = await _controllers(port, "controller_runtime_reconcile_total")
    waiting = await _controllers(port, "workqueue_depth")
    active = await _controllers(port, "controller_runtime_active_workers")
    return done is not None and done >= count and waiting == 0 and active == 0


async def _measure(run: RunFile, state: StateDirectory, port: int, count: int, rest: float, *, again: bool) -> Figures:
    figures = await fleet.measure(run, state, port, count, rest)
    return {**figures, **(await restart(state, port, count) if again else {})}


def of_size(count: int, *, rest: float, again: bool) -> Figures:
    """One fleet of `count` clusters from nothing to rest, and started again."""
    with tempfile.TemporaryDirectory(dir=_ROOT, prefix=".bench-") as scratch, contextlib.ExitStack() as stack:
        port, folder = free_port(), Path(scratch)
        running = stack.enter_context(fleet_of(folder, port))
        return uvloop.run(_measure(running, StateDirectory(folder / "state"), port, count, rest, again=again))


def run(*, sizes: Sequence[int] = SIZES, rest: float = 60.0) -> dict[str, Figures]:
    """Figures by size; `growth` has those of the largest as multiples of the smallest's. `rest` in seconds."""
    found = {count: of_size(count, rest=rest, again=count == max(sizes)) for count in sizes}
    small, large = found[min(sizes)], found[max(sizes)]
    growth = {f"{name} (1.00 is linear)": large[name] / small[name] for name in LINEAR}
    growth["time a cluster (1.00 is linear)"] = small["ready_per_s"] / large["ready_per_s"]
    return {**{f"{count:,} clusters": figures for count, figures in found.items()}, "growth": growth}


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="tests.benchmarks.growth")
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--rest", type=float, default=60.0, help="seconds of rest that are measured")
    chosen = parser.parse_args(words)
    print(json.dumps(run(sizes=chosen.sizes, rest=chosen.rest), indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
