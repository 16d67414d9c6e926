"""A rollout over thousands of clusters: `python -m tests.benchmarks.rollouts [CLUSTERS]`.

The API server (SQLite) and the deciding process are processes of their own; this one plays the owner of the objects and
the observer, who replays all writes in the server's order and holds them to the limits of the policy. Two of a hundred
clusters fail: the rollout halts and is resumed until it ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import uvloop
from tests.benchmarks.credentials import server
from tests.benchmarks.fleet import Figures, cpu_seconds, peak_mib
from tests.domains.rollouts.observer import Observation, appliances, observing
from tests.domains.rollouts.world import APPLIANCE_KIND, RolloutWorld, install

from hortus.engine.rollouts.types import CHANGE_KINDS, Rollout, RolloutPhase
from hortus.kube import Client

ROOT = Path(__file__).resolve().parents[2]
CALLERS = 16
REST = 30.0
"""Seconds."""
RINGS = ("canary", "early", "late")
STAGES = [
    {"name": "canary", "clusters": {"matchLabels": {"ring": "canary"}}, "maxConcurrency": 5, "maxFailures": "5%"},
    {"name": "early", "clusters": {"matchLabels": {"ring": "early"}}, "maxConcurrency": "5%", "maxFailures": "1%"},
    {"name": "late", "maxConcurrency": 200, "maxFailures": "1%"},
]


def ring_of(number: int) -> str:
    """One of a hundred clusters is a canary, one of ten is early."""
    return RINGS[0] if number % 100 == 0 else RINGS[1] if number % 10 == 0 else RINGS[2]


def fails(name: str) -> bool:
    return int(name[1:]) % 50 == 7


async def measure(kubeconfig: Path, server_pid: int, clusters: int) -> Figures:
    """The figures of one rollout."""
    async with Client.from_kubeconfig(kubeconfig) as client:
        await install(client)
        here = RolloutWorld(client, kubeconfig)
        here.outcomes = lambda name: "Broken" if fails(name) else "Works"
        await client.create(CHANGE_KINDS, APPLIANCE_KIND)
        numbers = iter(range(clusters))

        async def fill() -> None:
            for number in numbers:
                await here.add_cluster(f"c{number}", labels={"ring": ring_of(number)})

        await asyncio.gather(*(fill() for _ in range(CALLERS)))
        await here.set_policy(stages=STAGES)
        async with (
            here.decider() as pid,
            observing(client, appliances("2")) as observation,
            here.owner(follows=False),
        ):
            load, began = os.getloadavg()[0], time.monotonic()
            before, api_before = cpu_seconds(pid), cpu_seconds(server_pid)
            await here.start(policyName="presses", execute="Patch")
            ended, halts = await _to_the_end(here)
            seconds, cpu = time.monotonic() - began, cpu_seconds(pid) - before
            figures: Figures = {
                "clusters": clusters,
                "load_of_the_machine_before": load,
                "failed": sum(one.failed for one in ended.status.stages),
                "halts": halts,
                "seconds": seconds,
                "decider_cpu_ms_per_cluster": cpu / clusters * 1000,
                "apiserver_cpu_ms_per_cluster": (cpu_seconds(server_pid) - api_before) / clusters * 1000,
                "decider_peak_mib": peak_mib(pid),
            }
            at_rest = len(observation.moments)
            await asyncio.sleep(REST)
            figures["writes_at_rest"] = len(observation.moments) - at_rest
            figures["decider_cpu_percent_at_rest"] = (cpu_seconds(pid) - before - cpu) / REST * 100
        early = clusters // 10 - clusters // 100
        limits = {"canary": 5, "early": max(1, early * 5 // 100), "late": 200}
    return figures | observed(observation, limits, clusters)


def observed(
    observation: Observation, limits: Mapping[str, int], clusters: int, *, kills: Sequence[float] = ()
) -> Figures:
    """The figures of the observer: times from outcomes, resumes and kills to the next admission, limits, writes."""
    replay = observation.replay(limits, kills=kills)
    late = sorted(replay.latencies)
    return {
        "outcome_to_admission_p50_s": late[len(late) // 2],
        "outcome_to_admission_p99_s": late[len(late) * 99 // 100],
        "outcome_to_admission_most_s": late[-1],
        "resume_to_admission_most_s": max(replay.resumes, default=0.0),
        **({"kill_to_admission_most_s": max(replay.restarts)} if replay.restarts else {}),
        "admitted": replay.admitted,
        **{f"most_in_work_{stage}_of_{most}": replay.most.get(stage, 0) for stage, most in limits.items()},
        "broken_limits": len(replay.problems),
        "slice_writes_per_cluster": observation.slices / clusters,
        "rollout_writes_per_cluster": observation.rollouts / clusters,
    }


async def _to_the_end(here: RolloutWorld) -> tuple[Rollout, int]:
    halts = 0
    while True:
        known = halts
        rollout = await here.until(
            lambda one: one.status.phase == RolloutPhase.SUCCEEDED or one.status.halts > known,  # noqa: B023
            patience=600.0,
        )
        if rollout.status.phase == RolloutPhase.SUCCEEDED:
            return rollout, halts
        halts = rollout.status.halts
        await here.order("by-hand", resumes=halts)


def run(*, clusters: int = 5000) -> dict[str, Figures]:
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".bench-") as folder, server(Path(folder)) as (kubeconfig, pid):
        return {"rollout": uvloop.run(measure(kubeconfig, pid, clusters))}


if __name__ == "__main__":
    print(json.dumps(run(clusters=int(sys.argv[1]) if len(sys.argv) > 1 else 5000), indent=2))
