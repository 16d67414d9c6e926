"""Cluster credentials as a whole, and the engine compared with its peers.

`run()` gives figures by title. Every contestant works on the same server, an embedded API server with the SQLite store
in a process of its own, one after the other, each on a fresh set of objects; the order turns with each round.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import uvloop

from hortus.cli.up.supervisor import ChildReport
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube import Client
from hortus.kube.objects import Object, Resource

SECRETS = Resource("", "v1", "secrets", "Secret")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NAMESPACE = "kcp-system"
CONTESTANTS = ("bare", "ours", "with_kopf")
_ROOT = Path(__file__).resolve().parents[2]

Figures = dict[str, dict[str, float]]


@contextmanager
def server(folder: Path) -> Iterator[tuple[Path, int]]:
    """The API server of `hortus up` alone; its kubeconfig and process id."""
    command = [sys.executable, "-m", "hortus.cli.up.processes", "apiserver", "--state-dir", str(folder)]
    # With bytecode, as an installed package has it: some development environments switch writing it off.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if msgspec.json.decode(line, type=ChildReport).state == "ready":
                break
        try:
            yield folder / "kubeconfig", child.pid
        finally:
            child.terminate()
            child.communicate()


def cluster(number: int) -> Object:
    name = f"bench-{number}"
    labels = {"kyma-project.io/shoot-name": name, "kyma-project.io/runtime-id": name}
    secret = {"name": f"kubeconfig-{name}", "namespace": NAMESPACE, "key": "config"}
    return {
        "apiVersion": GARDENER_CLUSTERS.api_version,
        "kind": GARDENER_CLUSTERS.kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"shoot": {"name": name}, "kubeconfig": {"secret": secret}},
    }


async def make_namespace(kubeconfig: Path) -> None:
    """Create the Namespace of the clusters, which in `hortus up` the controllers' process creates."""
    async with Client.from_kubeconfig(kubeconfig) as client:
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})


async def _fill(kubeconfig: Path, count: int) -> None:
    async with Client.from_kubeconfig(kubeconfig) as client:
        numbers = iter(range(count))

        async def work() -> None:
            for number in numbers:
                await client.create(GARDENER_CLUSTERS, cluster(number))

        await asyncio.gather(*(work() for _ in range(16)))


async def emptied(kubeconfig: Path) -> None:
    """Remove what a contestant left; kopf's finalizers are taken off first."""
    async with Client.from_kubeconfig(kubeconfig) as client:
        left = [c for c in (await client.list(GARDENER_CLUSTERS, NAMESPACE)).items if c["metadata"].get("finalizers")]
        patch = {"metadata": {"finalizers": None}}
        for start in range(0, len(left), 50):
            part = [c["metadata"]["name"] for c in left[start : start + 50]]
            await asyncio.gather(*(client.patch(GARDENER_CLUSTERS, name, patch, NAMESPACE) for name in part))
        await client.delete_collection(GARDENER_CLUSTERS, NAMESPACE)
        await client.delete_collection(SECRETS, NAMESPACE)


def _contest(name: str, kubeconfig: Path, count: int) -> dict[str, Any]:
    environment = {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),
        "PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(_ROOT)]),
    }
    module = f"tests.benchmarks.trivial.{name}"
    done = subprocess.run(
        [sys.executable, "-m", module, str(kubeconfig), str(count)],
        env=environment,
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(next(line for line in done.stdout.splitlines() if line.startswith('{"objects"')))
    return found


def trivial(count: int, rounds: int) -> Figures:
    """CPU per object of the trivial job, median over rounds, and the ratios we are judged by."""
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in CONTESTANTS}
    with tempfile.TemporaryDirectory(dir=_ROOT, prefix=".bench-") as folder, server(Path(folder)) as (kubeconfig, _):
        uvloop.run(make_namespace(kubeconfig))
        for number in range(rounds):
            turn = number % len(CONTESTANTS)
            for name in (*CONTESTANTS[turn:], *CONTESTANTS[:turn]):
                uvloop.run(_fill(kubeconfig, count))
                results[name].append(_contest(name, kubeconfig, count))
                uvloop.run(emptied(kubeconfig))
    figures = {
        name: {
            "cpu_ms_per_object": median(r["cpu_s"] for r in found) / count * 1000,
            "objects_per_s": count / median(r["wall_s"] for r in found),
            "peak_rss_mib": max(r["peak_rss_mib"] for r in found),
        }
        for name, found in results.items()
    }
    ours = figures["ours"]["cpu_ms_per_object"]
    figures["ratio"] = {
        "bare_loop_times": ours / figures["bare"]["cpu_ms_per_object"],
        "kopf_times_ours": figures["with_kopf"]["cpu_ms_per_object"] / ours,
    }
    return figures


def run(*, objects: int = 1000, rounds: int = 3, large: int = 5000) -> Figures:
    """Figures with `objects`, over so many rounds, and with `large`, once."""
    found = trivial(objects, rounds)
    more = {f"{name}, {large:,} objects": figures for name, figures in trivial(large, 1).items()} if large else {}
    return {**found, **more}


if __name__ == "__main__":
    amount = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(json.dumps(run(objects=amount, large=0), indent=2))
