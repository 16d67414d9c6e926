"""`hortus plan` over a fleet at rest: `python -m tests.benchmarks.plan [CLUSTERS] [--fleet FOLDER] [--only CHANGE]`.

`hortus up` makes the fleet, each cluster with its Runtime, its Kyma, the modules of the demo and an agent; or with
`--stacks` Clusters of a cluster stack. Then its API server and registry alone are the live side: nothing else changes
or reads it. Each plan is a process of its own, measured by the system; the audit log of the live side has the reads
that were sent. `--fleet FOLDER` keeps the fleet there, or goes on with the one that is there.
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
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
from tests.benchmarks.fleet import Figures
from tests.benchmarks.kymas.keeping import Place, place_of
from tests.benchmarks.plans import catalog
from tests.benchmarks.plans.fleets import child, governed, make
from tests.cli.plan.reads import lists_of

from hortus.cli.up.state import FLAGS_FILE, StateDirectory
from hortus.kube.objects import Object

_ROOT = Path(__file__).resolve().parents[2]
_AUDIT = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
_LOOK = 0.3
CHANGES = ("none", "channel", "minor", "agents")
STACK_CHANGES = ("none", "release")
POLICIES = {
    "minor": catalog.policy("kubernetes", "kubernetes-version", soak="24h"),
    "agents": catalog.policy("agents", "agent"),
    "release": catalog.policy("stacks", "cluster-stack"),
}


async def _serve(folder: Path, port: int) -> None:
    """The live side, until SIGTERM or the end of standard input."""
    from hortus.cli.up.registry import local_registry
    from hortus.cli.up.server import serve
    from hortus.engine.process import stop_with_supervisor

    state, policy = StateDirectory(folder / "state"), folder / "audit.yaml"
    policy.write_text(_AUDIT)
    (state.logs / "audit.log").unlink(missing_ok=True)
    state.acquire()  # a command refuses a folder that no running process holds
    config = {"apiserver": {"limits": {"connections": 19000, "watches": 18500}}}
    async with local_registry(state.path) as registry:
        flags = orjson.loads((state.path / FLAGS_FILE).read_bytes())
        assert f"--oci-registry-host=http://{registry.address}" in flags, "the registry has another port"
        serving = asyncio.ensure_future(serve(state, port=port, ephemeral=False, audit_policy=policy, config=config))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
        stop_with_supervisor(serving.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await serving


def _words(change: str, folder: Path, clusters: int) -> list[str]:
    """The options of `hortus plan` for a change."""
    if change == "channel":
        return ["--channel", "template-operator/regular=1.1.0"]
    file = folder / f"{change}.json"
    if change == "minor":
        start = ["-m", "hortus", "rollout", "start", "kubernetes-version", "--to", "1.35.0", "--dry-run"]
        place = ["--kubeconfig", str(folder / "state/kubeconfig")]
        made = subprocess.run([sys.executable, *start, *place], capture_output=True, check=True)
        file.write_bytes(made.stdout)
    elif change == "agents":
        file.write_bytes(_list([catalog.agents("600Mi")]))
    elif change == "release":
        file.write_bytes(_list([catalog.stack("v1", "v2"), *catalog.clusters(clusters, "v2")]))
    else:
        return []
    return ["-f", str(file)]


def _list(objects: Sequence[Object]) -> bytes:
    return orjson.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


async def _governed_plan(place: Place, change: str, more: Sequence[str], clusters: int) -> Figures:
    if change not in POLICIES:
        return await asyncio.to_thread(plan, place, change, more, clusters)
    async with governed(place.folder / "state/kubeconfig", POLICIES[change]):
        return await asyncio.to_thread(plan, place, change, more, clusters)


def plan(place: Place, change: str, more: Sequence[str], clusters: int) -> Figures:
    """One plan as a process of its own."""
    folder, log = place.folder, place.folder / "state/logs/audit.log"
    given = [*_words(change, folder, clusters), *more]
    begin, began, load = log.stat().st_size if log.exists() else 0, time.monotonic(), os.getloadavg()[0]
    words = ["-m", "hortus", "plan", "--kubeconfig", str(folder / "state/kubeconfig"), "-o", "json", *given]
    with (folder / "plan.json").open("wb") as output:
        made = subprocess.Popen([sys.executable, *words], stdout=output)
    with _counted_sockets(made.pid) as sockets:
        _, status, usage = os.wait4(made.pid, 0)
    made.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - began
    with log.open("rb") as file:
        file.seek(begin)
        lists = lists_of(file.read())
    figures = {
        "exit_code": float(made.returncode),
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,
        "lists": float(lists.total()),
        "clusters_read": float(len({cluster for cluster, _ in lists})),
        "most_lists_of_a_kind_and_cluster": float(max(lists.values(), default=0)),
        "most_sockets": float(max(sockets, default=0)),
        "load_before": load,
    }
    with contextlib.suppress(orjson.JSONDecodeError):
        found = orjson.loads((folder / "plan.json").read_bytes())
        sums = {name: float(value) for name, value in found["sums"].items()}
        figures |= sums | {"groups": float(len(found["groups"])), "problems": float(len(found["problems"]))}
    return figures


@contextlib.contextmanager
def _counted_sockets(pid: int) -> Iterator[list[int]]:
    """The numbers of open sockets of a process, looked at a few times a second until the end of the block."""
    found: list[int] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOK):
            with contextlib.suppress(OSError):
                files = [str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()]
                found.append(sum(one.startswith("socket:") for one in files))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield found
    finally:
        over.set()
        looking.join()


def run(words: Sequence[str] = ()) -> dict[str, Figures]:
    parser = argparse.ArgumentParser(prog="tests.benchmarks.plan")
    parser.add_argument("clusters", nargs="?", type=int, default=100)
    parser.add_argument("--fleet", type=Path, help="a folder that keeps the fleet, or has one from before")
    every = (*CHANGES, *STACK_CHANGES[1:])
    parser.add_argument("--only", action="append", default=[], choices=every, help="a change to plan, no other")
    parser.add_argument("--stacks", action="store_true", help="Clusters of a cluster stack")
    parser.add_argument("--plan", action="append", default=[], help="a further option of hortus plan, as --plan=-o")
    options = parser.parse_args(words)
    results: dict[str, Figures] = {}
    with place_of(options.fleet, copied=False, scratch=_ROOT) as place:
        if place.kept is None:
            make(place, options.clusters, stacks=options.stacks)
            place = place.found()
        assert place.kept is not None, "the fleet was made"
        kept = place.kept
        with child(["-m", "tests.benchmarks.plan", "serve", str(place.folder), str(kept.port)], "https://"):
            for change in options.only or (STACK_CHANGES if options.stacks else CHANGES):
                figures = asyncio.run(_governed_plan(place, change, options.plan, kept.kymas))
                results[f"{change}, {kept.kymas} clusters"] = figures
    return results


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(_serve(Path(sys.argv[2]), int(sys.argv[3])))
    else:
        print(json.dumps(run(sys.argv[1:]), indent=2))
