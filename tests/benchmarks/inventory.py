"""The inventory over thousands of clusters: `python -m tests.benchmarks.inventory [CLUSTERS]`.

Two fleets, one after the other: Runtimes alone, which have no kubeconfig yet, and one in which every fifth cluster is a
logical cluster of an API server in another process, with a labelled Secret, and is watched. This process runs the
controller: from an empty inventory to the last profile, then at rest, with new clusters one after the other, and from
its start over the objects that are there.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import uvloop

from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.credentials.types import GardenerCluster, Label
from hortus.domains.inventory import settings
from hortus.domains.inventory.composition import add_controller
from hortus.domains.inventory.shoots import outline
from hortus.domains.inventory.types import CLUSTER_PROFILES, ClusterProfile, SourceLabel
from hortus.engine import Cache, Manager, find_condition
from hortus.engine.deputies import Deputies
from hortus.engine.flags import FlagSet
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.remote import RemotePool, RemoteSettings, SecretCredentials
from hortus.kube import Client, yaml
from hortus.kube.objects import Object, Resource
from hortus.schema import crd
from hortus.testing.apiserver import started_apiserver

CLUSTERS = 5000
WATCHED = 5
"""One cluster in so many is connected and watched."""
NEW = 50
"""Clusters that are added one after the other."""
REST = 30.0
"""Seconds."""
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
Figures = dict[str, float]


def _serve(clusters: int, watched: int, answers: Queue[str]) -> None:
    names = [f"bench-{number}" for number in range(watched)]
    with started_apiserver(clusters=names) as server:
        root = server.server.local("root")
        for kind in (ClusterProfile, Runtime, GardenerCluster):
            server.run(root.create(CRDS, crd(kind)))
        for namespace in ("fleet", "later"):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            server.run(root.create(NAMESPACES, body))
        for number, name in enumerate(names):
            namespace = "default" if number < watched - NEW else "later"
            server.run(root.create(SECRETS, _secret(name, namespace, yaml.dump(server.kubeconfig_dict(name)))))
        for number in range(watched, clusters):
            server.run(root.create(RUNTIMES, _runtime(f"bench-{number}")))
        answers.put(server.kubeconfig.read_text())
        threading.Event().wait()  # until killed


def _secret(name: str, namespace: str, kubeconfig: str) -> Object:
    labels = {SourceLabel.KUBECONFIG: "true"} if namespace == "default" else {}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"config": kubeconfig}}


def _runtime(name: str) -> Object:
    metadata = {"name": name, "namespace": "default", "labels": {Label.RUNTIME_ID: name}}
    return {"apiVersion": RUNTIMES.api_version, "kind": RUNTIMES.kind, "metadata": metadata}


class _Counted:
    """Requests to the management cluster."""

    def __init__(self) -> None:
        self.writes = self.reads = 0

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        if method == "GET":
            self.reads += 1
        else:
            self.writes += 1


class _Process:
    """The controller as `hortus run` has it, in this process."""

    def __init__(self, client: Client) -> None:
        self.manager = manager = Manager(client, grace=0.0)
        values = FlagSet(settings.FLAGS).parse(["--inventory"])
        kubeconfigs = manager.cache(SECRETS, labels=Label.SHOOT_NAME, transform=sealed)
        pool = RemotePool(SecretCredentials(client, kubeconfigs), settings=RemoteSettings(deny=(), sockets=30_000))
        manager.on_stop(pool.close)
        shoots = Cache("shoots", transform=outline)
        shoots.replace((), 0)
        add_controller(
            manager,
            client=client,
            pool=pool,
            kubeconfigs=kubeconfigs,
            shoots=shoots,
            garden_namespace="garden",
            watched="",
            deputies=Deputies(client, "*", clock=manager.clock),
            settings=settings.from_flags(values),
        )


async def _until_reported(client: Client, count: int) -> None:
    """Return when that many profiles say whether their cluster is joined."""
    known: set[str] = set()
    async with client.watch(CLUSTER_PROFILES, "fleet", initial_events=True) as events:
        async for event in events:
            found = find_condition(event.object, "Joined") if event.type != "BOOKMARK" else None
            if found is not None and found["status"] != "Unknown":
                known.add(event.object["metadata"]["name"])
            if len(known) >= count:
                return


async def _added(client: Client, names: Sequence[str], add: Callable[[str], Awaitable[object]]) -> Figures:
    """The time from a source until its profile is seen, one cluster after the other."""
    times = []
    async with client.watch(CLUSTER_PROFILES, "fleet") as events:
        for name in names:
            began = time.monotonic()
            await add(name)
            async for event in events:
                if event.object["metadata"]["name"] == name:
                    break
            times.append(time.monotonic() - began)
    times.sort()
    return {"median ms": times[len(times) // 2] * 1000, "slowest ms": times[-1] * 1000}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


async def _measure(kubeconfig: Path, clusters: int, watched: int) -> dict[str, Figures]:
    figures: dict[str, Figures] = {}
    later = NEW if watched else 0
    first, counted = clusters - later, _Counted()
    async with (
        Client.from_kubeconfig(kubeconfig) as watcher,
        Client.from_kubeconfig(kubeconfig, observer=counted) as client,
    ):

        async def label(name: str) -> None:
            await watcher.patch(SECRETS, name, {"metadata": {"labels": {SourceLabel.KUBECONFIG: "true"}}}, "later")

        async def create(name: str) -> None:
            await watcher.create(RUNTIMES, _runtime(name))

        before, began, memory = _cpu(), time.monotonic(), _resident()
        async with _Process(client).manager.running():
            await _until_reported(watcher, first)
            seconds, cpu = time.monotonic() - began, _cpu() - before
            figures["joining"] = {
                "clusters": first,
                "s": seconds,
                "CPU ms a cluster": cpu / first * 1000,
                "writes a cluster": counted.writes / first,
                "KiB a cluster": (_resident() - memory) / first * 1024,
            }
            await asyncio.sleep(10.0)  # until the last facts of nodes are in
            before, writes, reads = _cpu(), counted.writes, counted.reads
            await asyncio.sleep(REST)
            figures["at rest"] = {
                "writes": counted.writes - writes,
                "reads": counted.reads - reads,
                "CPU % of a core": (_cpu() - before) / REST * 100,
                "MiB": _resident(),
            }
            figures["a new Runtime"] = await _added(watcher, [f"new-{number}" for number in range(NEW)], create)
            if later:
                names = [f"bench-{number}" for number in range(watched - later, watched)]
                figures["a new Secret"] = await _added(watcher, names, label)
            await asyncio.sleep(10.0)  # until their last facts are in
    counted = _Counted()
    async with Client.from_kubeconfig(kubeconfig, observer=counted) as client:
        before = _cpu()
        async with _Process(client).manager.running():
            await asyncio.sleep(REST)
            figures["a restart"] = {"writes": counted.writes, "CPU ms a cluster": (_cpu() - before) / clusters * 1000}
    return figures


def _fleet(clusters: int, watched: int) -> dict[str, Figures]:
    context = multiprocessing.get_context("spawn")
    answers: Queue[str] = context.Queue()
    server = context.Process(target=_serve, args=(clusters, watched, answers), daemon=True)
    server.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = Path(folder) / "kubeconfig"
            kubeconfig.write_text(answers.get(timeout=600))
            return uvloop.run(_measure(kubeconfig, clusters, watched))
    finally:
        server.kill()


def run(clusters: int = CLUSTERS) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for watched in (0, clusters // WATCHED):
        for subject, figures in _fleet(clusters, watched).items():
            found[f"{watched:,} watched: {subject}"] = figures
    return found


if __name__ == "__main__":
    for subject, figures in run(int(sys.argv[1]) if len(sys.argv) > 1 else CLUSTERS).items():
        print(subject, {name: round(value, 2) for name, value in figures.items()})
