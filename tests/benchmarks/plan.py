"""`hortus plan` over a fleet at rest: `python -m tests.benchmarks.plan [CLUSTERS] [--fleet FOLDER] [--only CHANGE]`.

`hortus up` makes the fleet, each cluster with its Runtime, its Kyma and the modules of the demo. Then its API server
and registry alone are the live side: nothing else changes or reads it. Each plan is a process of its own, measured by
the system; the audit log of the live side has the reads that were sent. `--fleet FOLDER` keeps the fleet there, or goes
on with the one that is there.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
from tests.benchmarks.fleet import Figures, free_port
from tests.benchmarks.kymas.keeping import Place, place_of
from tests.cli.plan.reads import lists_of

from hortus.cli.up.state import StateDirectory
from hortus.engine.rollouts.types import ROLLOUT_POLICIES
from hortus.kube import Client
from hortus.kube.objects import Object

_ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 3600.0
"""Seconds until a fleet that does not become ready is given up."""
_FAST = """
simulation:
  {create_duration: 1, reconcile_duration: 1, schedule_delay: 0, progress_period: 0.5, care_period: 0.1, workers: 200,
   workload_duration: 1, workload_clusters: 20000, sync_period: 86400}
apiserver: {limits: {connections: 19000, watches: 18500}}
controllers: {runtime-ctrl-workers-cnt: 100, modules-revalidation-interval: 24h}
"""
_AUDIT = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
POLICY: Object = {
    "apiVersion": ROLLOUT_POLICIES.api_version,
    "kind": ROLLOUT_POLICIES.kind,
    "metadata": {"name": "kubernetes", "namespace": "fleet"},
    "spec": {
        "changes": [{"kind": "kubernetes-version"}],
        "stages": [
            {
                "name": "canary",
                "clusters": {"matchLabels": {"fleet.hortus.dev/provider": "gcp"}},
                "maxConcurrency": "10%",
                "minSuccessTime": "24h",
                "approval": "After",
            },
            {"name": "rest", "maxConcurrency": "20%"},
        ],
    },
}
CHANGES = ("none", "channel", "minor")


@contextlib.contextmanager
def _child(words: Sequence[str], ready: str) -> Iterator[subprocess.Popen[str]]:
    """A process of this package, up to its end; from the line that has `ready` in it."""
    with subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            if not any(ready in line for line in child.stdout):
                raise AssertionError(f"{words} ended before it said {ready!r}")
            yield child
        finally:
            child.terminate()
            child.communicate()


def make(place: Place, clusters: int) -> None:
    """The fleet, ready and stopped."""
    config, port = place.folder / "up.yaml", free_port()
    config.write_text(_FAST)
    words = ["-m", "hortus", "up", "--state-dir", str(place.folder / "state"), "--port", str(port)]
    ready = f"ready: runtimes {clusters}/{clusters}, kymas {clusters}/{clusters}"
    with _child([*words, "--clusters", str(clusters), "--config", str(config)], ready):
        place.keep(port=port, kymas=clusters)


async def _serve(folder: Path, port: int) -> None:
    """The live side, until SIGTERM or the end of standard input."""
    from hortus.cli.up.processes import stop_with_supervisor
    from hortus.cli.up.registry import local_registry
    from hortus.cli.up.server import serve

    state, policy = StateDirectory(folder / "state"), folder / "audit.yaml"
    policy.write_text(_AUDIT)
    (state.logs / "audit.log").unlink(missing_ok=True)
    state.acquire()  # a command refuses a folder that no running process holds
    config = {"apiserver": {"limits": {"connections": 19000, "watches": 18500}}}
    async with local_registry(state.path):
        serving = asyncio.ensure_future(serve(state, port=port, ephemeral=False, audit_policy=policy, config=config))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
        stop_with_supervisor(asyncio.get_running_loop(), serving.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await serving


def _words(change: str, folder: Path) -> list[str]:
    """The options of `hortus plan` for a change."""
    if change == "channel":
        return ["--channel", "template-operator/regular=1.1.0"]
    if change == "minor":
        kubeconfig, rollout = folder / "state/kubeconfig", folder / "rollout.yaml"
        asyncio.run(_govern(kubeconfig))
        start = ["-m", "hortus", "rollout", "start", "kubernetes-version", "--to", "1.35.0", "--dry-run"]
        made = subprocess.run(
            [sys.executable, *start, "--kubeconfig", str(kubeconfig)], capture_output=True, check=True
        )
        rollout.write_bytes(made.stdout)
        return ["-f", str(rollout)]
    return []


async def _govern(kubeconfig: Path) -> None:
    """Creates the policy of the minor, which the rollout copies."""
    async with Client.from_kubeconfig(kubeconfig) as client:
        await client.apply(ROLLOUT_POLICIES, POLICY, field_manager="bench", force=True)


def plan(place: Place, change: str, more: Sequence[str]) -> Figures:
    """One plan as a process of its own."""
    folder, log = place.folder, place.folder / "state/logs/audit.log"
    given = [*_words(change, folder), *more]
    begin, began, load = log.stat().st_size if log.exists() else 0, time.monotonic(), os.getloadavg()[0]
    words = ["-m", "hortus", "plan", "--kubeconfig", str(folder / "state/kubeconfig"), "-o", "json", *given]
    with (folder / "plan.json").open("wb") as output:
        child = subprocess.Popen([sys.executable, *words], stdout=output)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - began
    with log.open("rb") as file:
        file.seek(begin)
        lists = lists_of(file.read())
    figures = {
        "exit_code": float(child.returncode),
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,
        "lists": float(lists.total()),
        "clusters_read": float(len({cluster for cluster, _ in lists})),
        "most_lists_of_a_kind_and_cluster": float(max(lists.values(), default=0)),
        "load_before": load,
    }
    with contextlib.suppress(orjson.JSONDecodeError):
        found = orjson.loads((folder / "plan.json").read_bytes())
        sums = {name: float(value) for name, value in found["sums"].items()}
        figures |= sums | {"groups": float(len(found["groups"])), "problems": float(len(found["problems"]))}
    return figures


def run(words: Sequence[str] = ()) -> dict[str, Figures]:
    parser = argparse.ArgumentParser(prog="tests.benchmarks.plan")
    parser.add_argument("clusters", nargs="?", type=int, default=100)
    parser.add_argument("--fleet", type=Path, help="a folder that keeps the fleet, or has one from before")
    parser.add_argument("--only", action="append", default=[], choices=CHANGES, help="a change to plan, no other")
    parser.add_argument("--plan", action="append", default=[], help="a further option of hortus plan, as --plan=-o")
    options = parser.parse_args(words)
    results: dict[str, Figures] = {}
    with place_of(options.fleet, copied=False, scratch=_ROOT) as place:
        if place.kept is None:
            make(place, options.clusters)
            place = place.found()
        assert place.kept is not None, "the fleet was made"
        kept = place.kept
        with _child(["-m", "tests.benchmarks.plan", "serve", str(place.folder), str(kept.port)], "https://"):
            for change in options.only or CHANGES:
                results[f"{change}, {kept.kymas} clusters"] = plan(place, change, options.plan)
    return results


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(_serve(Path(sys.argv[2]), int(sys.argv[3])))
    else:
        print(json.dumps(run(sys.argv[1:]), indent=2))
