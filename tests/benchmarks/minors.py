"""A Kubernetes minor over thousands of Runtimes: `python -m tests.benchmarks.minors [RUNTIMES] [KILLS]`.

A whole `hortus up`; two of a hundred shoots fail the update. `hortus rollout start` begins it, `hortus rollout resume`
goes on after each halt, and the process that decides is killed with SIGKILL at random moments. An observer replays the
server's writes and holds them to the policy's limits. The operations of the simulated garden take a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import uvloop
from tests.benchmarks.fleet import Figures, _counted, _each, cpu_seconds, peak_mib, server_writes
from tests.benchmarks.rollouts import observed
from tests.benchmarks.runtimes import NAMESPACE, _until_quiet, running, runtime
from tests.domains.rollouts.observer import Progress, Watched, observing
from tests.waiting import until

from hortus.cli.up.state import StateDirectory
from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.engine.rollouts.types import ROLLOUT_POLICIES, ROLLOUTS, Rollout, RolloutPhase
from hortus.kube import Client
from hortus.kube.objects import Object
from hortus.schema import decode

_ROOT = Path(__file__).resolve().parents[2]
FLEET = "fleet"
OLD, NEW = "1.33.5", "1.34.1"
RING = "ring"
STAGES = [
    {"name": "canary", "clusters": {"matchLabels": {RING: "canary"}}, "maxConcurrency": 5, "maxFailures": "10%"},
    {"name": "early", "clusters": {"matchLabels": {RING: "early"}}, "maxConcurrency": "5%", "maxFailures": "1%"},
    {"name": "late", "maxConcurrency": 200, "maxFailures": "1%"},
]
POLICY: Object = {
    "apiVersion": ROLLOUT_POLICIES.api_version,
    "kind": "RolloutPolicy",
    "metadata": {"name": "minors", "namespace": FLEET},
    "spec": {"changes": [{"kind": "kubernetes-version"}], "stages": STAGES},
}
CONFIG = (
    "simulation: {create_duration: 1, reconcile_duration: 1, schedule_delay: 0, progress_period: 0.5, care_period: 0.1,"
    " workers: 200, faults: [{shoots: 'f-*', operation: Reconcile, code: ERR_INFRA_UNAUTHORIZED}]}\n"
    f"controllers: {{runtime-ctrl-workers-cnt: 100, inventory-labels: {RING}}}\n"
)
"""The first operation of a shoot is a Create, so the fault strikes the update."""
PAUSE = (10.0, 50.0)
"""Seconds between two kills."""
HESITATION = 3.0
"""Seconds from a halt until people resume the rollout."""
REST = 30.0
"""Seconds."""
PATIENCE = 1800.0
"""Seconds until a rollout that does not end is given up."""


class Fleet:
    """The Runtimes by number: rings and failures in a fixed order."""

    def __init__(self, count: int) -> None:
        random = Random(count)
        self.count = count
        self.failing = {number for number in range(count) if random.random() < 0.02}

    def ring(self, number: int) -> str:
        return "canary" if number % 100 == 0 else "early" if number % 10 == 0 else "late"

    def name(self, number: int) -> str:
        return f"{'f' if number in self.failing else 'r'}-{number}"

    def runtime(self, number: int) -> Object:
        made, name = runtime(number), self.name(number)
        made["metadata"]["name"] = made["spec"]["shoot"]["name"] = name
        names = {"kyma-project.io/runtime-id": name, "operator.kyma-project.io/kyma-name": name}
        made["metadata"]["labels"] |= {**names, RING: self.ring(number)}
        kubernetes = made["spec"]["shoot"].get("kubernetes") or {}
        made["spec"]["shoot"]["kubernetes"] = {**kubernetes, "version": OLD}
        return made

    @property
    def limits(self) -> dict[str, int]:
        """The greatest number in work of each stage."""
        rings = Counter(self.ring(number) for number in range(self.count))
        return {"canary": 5, "early": max(1, rings["early"] * 5 // 100), "late": 200}


def _progress(obj: Object) -> Progress:
    begun = (obj["spec"]["shoot"].get("kubernetes") or {}).get("version") == NEW
    status = obj.get("status") or {}
    current = any(
        one["type"] == "Provisioned" and one.get("observedGeneration") == obj["metadata"]["generation"]
        for one in status.get("conditions") or ()
    )
    return Progress(obj["metadata"]["name"], begun, begun and current and status.get("state") in ("Ready", "Failed"))


class Run:
    """One rollout and those who take part in it."""

    def __init__(self, state: StateDirectory, client: Client, fleet: Fleet, kills: int) -> None:
        self.state = state
        self.client = client
        self.fleet = fleet
        self.kills = kills
        self.kills_at: list[float] = []
        self.halted: list[str] = []
        self._random = Random(fleet.count)
        self._cpu = 0.0
        self.memory = 0.0

    async def command(self, *words: str) -> str:
        """The output of `hortus rollout WORDS`."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hortus", "rollout", *words),
            env={**os.environ, "KUBECONFIG": str(self.state.kubeconfig)},
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
        assert process.returncode == 0, words
        print("$ hortus rollout", *words, "\n" + out.decode().strip(), flush=True)
        return out.decode()

    @property
    def _decider(self) -> int:
        """The process that decides; 0 while it starts again."""
        found = self.state.run()
        assert found is not None
        return found.processes.get("controllers", 0)

    def cpu(self) -> float:
        """Processor time of all processes that decided so far."""
        self.memory = max(self.memory, peak_mib(self._decider))
        return self._cpu + cpu_seconds(self._decider)

    async def kill(self) -> None:
        """Kill the deciding process at random moments."""
        while len(self.kills_at) < self.kills:
            await asyncio.sleep(self._random.uniform(*PAUSE))
            pid = self._decider
            self._cpu = self.cpu()
            os.kill(pid, signal.SIGKILL)
            self.kills_at.append(time.monotonic())
            await until(lambda gone=(0, pid): self._decider not in gone)

    async def end(self, name: str) -> Rollout:
        """Resume the rollout after each halt until it has succeeded."""
        async with asyncio.timeout(PATIENCE), self.client.watch(ROLLOUTS, FLEET, initial_events=True) as events:
            async for event in events:
                if event.type in ("BOOKMARK", "DELETED"):
                    continue
                rollout = decode(Rollout, event.object)
                if rollout.status.phase == RolloutPhase.SUCCEEDED:
                    return rollout
                if rollout.status.phase == RolloutPhase.HALTED and rollout.status.halts > len(self.halted):
                    self.halted.append(next(one.message for one in rollout.status.conditions if one.type == "Halted"))
                    await asyncio.sleep(HESITATION)
                    await self.command("resume", name)
        raise AssertionError("the watch ended")


async def grow(client: Client, fleet: Fleet) -> float:
    """Create the Runtimes; return, once all is quiet, the seconds until they were Ready and in the inventory."""
    began = time.monotonic()
    async with (
        _counted(client, CLUSTER_PROFILES, fleet.count, lambda obj: True),
        _counted(client, RUNTIMES, fleet.count, _ready),
    ):
        await _each(fleet.count, lambda number: client.create(RUNTIMES, fleet.runtime(number)))
    grown = time.monotonic() - began
    await _until_quiet(client)
    return grown


def _ready(obj: Object) -> bool:
    return bool((obj.get("status") or {}).get("state") == "Ready")


@asynccontextmanager
async def during(step: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(step)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def measure(state: StateDirectory, fleet: Fleet, kills: int) -> Figures:
    async with Client.from_kubeconfig(state.kubeconfig) as client:
        grown = await grow(client, fleet)
        await client.create(ROLLOUT_POLICIES, POLICY)
        run = Run(state, client, fleet, kills)
        async with observing(client, Watched(RUNTIMES, NAMESPACE, _progress)) as observation:
            before, load = run.cpu(), os.getloadavg()[0]
            writes, began = await server_writes(client), time.monotonic()
            name = (await run.command("start", "kubernetes", "--from", OLD, "--to", NEW)).split()[1]
            async with during(run.kill()):
                rollout = await run.end(name)
            figures: Figures = {
                "runtimes": fleet.count,
                "load_of_the_machine_before": load,
                "seconds_to_all_ready": grown,
                "seconds": time.monotonic() - began,
                "had_to_fail": len(fleet.failing),
                "failed": sum(one.failed for one in rollout.status.stages),
                "halts": len(run.halted),
                "kills": len(run.kills_at),
                "controllers_cpu_ms_per_cluster": (run.cpu() - before) / fleet.count * 1000,
                "controllers_peak_mib": run.memory,
                "writes_of_everybody_per_cluster": (await server_writes(client) - writes) / fleet.count,
            }
            await _until_quiet(client)
            await run.command("show", name)
            at_rest = await server_writes(client)
            await asyncio.sleep(REST)
            figures["writes_at_rest"] = await server_writes(client) - at_rest
        runtimes = [decode(Runtime, one) for one in (await client.list(RUNTIMES, NAMESPACE)).items]
        figures["at_the_new_version"] = sum(one.wanted.shoot.version == NEW for one in runtimes)
    return figures | observed(observation, fleet.limits, fleet.count, kills=run.kills_at)


def run(*, count: int = 300, kills: int = 3) -> dict[str, Figures]:
    with tempfile.TemporaryDirectory(dir=_ROOT, prefix=".bench-") as scratch:
        folder = Path(scratch)
        config = folder / "up.yaml"
        config.write_text(CONFIG)
        with running(folder, config):
            return {"minor": uvloop.run(measure(StateDirectory(folder / "state"), Fleet(count), kills))}


if __name__ == "__main__":
    amount = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print(json.dumps(run(count=amount, kills=int(sys.argv[2]) if len(sys.argv) > 2 else 3), indent=2))
