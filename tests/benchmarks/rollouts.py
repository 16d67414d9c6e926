"""A rollout over thousands of clusters: `python -m tests.benchmarks.rollouts [CLUSTERS]`.

The API server (SQLite) and the deciding process are processes of their own; this one plays the owner of the objects and
the observer, who replays all writes in the server's order and holds them to the limits of the policy. Two of a hundred
clusters fail: the rollout halts and is resumed until it ends.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import uvloop
from tests.benchmarks.credentials import server
from tests.domains.rollouts.observer import Replay, appliances, observing
from tests.domains.rollouts.world import APPLIANCE_KIND, RolloutWorld, install

from hortus.engine.rollouts.types import CHANGE_KINDS, Rollout, RolloutPhase
from hortus.kube import Client

ROOT = Path(__file__).resolve().parents[2]
CALLERS = 16
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


async def measure(kubeconfig: Path, server_pid: int, clusters: int) -> None:
    """Prints the figures of one rollout."""
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
        async with here.decider() as pid, observing(client, appliances("2")) as observation, here.owner(follows=False):
            before, api_before, began = _cpu(pid), _cpu(server_pid), time.monotonic()
            await here.start(policyName="presses", execute="Patch")
            ended, halts = await _to_the_end(here)
            seconds = time.monotonic() - began
            cpu, api, memory = _cpu(pid) - before, _cpu(server_pid) - api_before, _memory(pid)
            at_rest = len(observation.moments)
            await asyncio.sleep(30)
            rest_cpu, writes_at_rest = _cpu(pid) - before - cpu, len(observation.moments) - at_rest
        early = clusters // 10 - clusters // 100
        replay = observation.replay({"canary": 5, "early": max(1, early * 5 // 100), "late": 200})
    _print(ended, replay, observation.slices, clusters, seconds, cpu, api, memory, halts)
    print(f"at rest for 30 s         {writes_at_rest} writes, {rest_cpu / 30:.2%} of a core")


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


def _print(
    rollout: Rollout,
    replay: Replay,
    slices: int,
    clusters: int,
    seconds: float,
    cpu: float,
    api: float,
    memory: float,
    halts: int,
) -> None:
    failed = sum(one.failed for one in rollout.status.stages)
    print(f"clusters                 {clusters}, {failed} failed, halted {halts} times")
    print(f"time                     {seconds:.0f} s")
    print(f"most in work             {replay.most}; broken limits: {len(replay.problems)}")
    print_latencies(replay)
    print(f"CPU of the decider       {cpu:.1f} s, {cpu / clusters * 1000:.2f} ms a cluster")
    print(f"CPU of the API server    {api:.1f} s, {api / clusters * 1000:.2f} ms a cluster")
    print(f"writes of slices         {slices}, {slices / clusters:.3f} a cluster")
    print(f"memory of the decider    {memory:.0f} MiB")


def print_latencies(replay: Replay) -> None:
    """Prints the times from outcomes and resumes to the next admission."""
    late = sorted(replay.latencies)
    p50, p99 = late[len(late) // 2], late[len(late) * 99 // 100]
    print(f"outcome to admission     p50 {p50:.2f} s, p99 {p99:.2f} s, most {late[-1]:.2f} s")
    print(f"resume to admission      {', '.join(f'{one:.2f} s' for one in replay.resumes) or 'none'}")


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def main() -> None:
    clusters = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".bench-") as folder, server(Path(folder)) as (kubeconfig, pid):
        uvloop.run(measure(kubeconfig, pid, clusters))


if __name__ == "__main__":
    main()
