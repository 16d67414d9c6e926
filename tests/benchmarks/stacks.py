"""Cluster stacks at scale: `python -m tests.benchmarks.stacks [RELEASES] [CLUSTERS] [--rest S] [--state DIR]`.

A whole `hortus up`: the API server with SQLite, the simulated Cluster API with a logical cluster for each Cluster, and
the controllers of all domains as a user runs them. This process is the host of the releases, makes the objects and
observes. In order: the catalogue is prepared, the fleet installed, left at rest, one stack upgraded on all Clusters in
the waves of a RolloutPolicy, then Kubernetes by one minor with its runtime hooks, and the controllers started again.

With `--state` the folder is kept, and a later run goes on from there: what is prepared is not prepared again.

Next to the figures stand those of SovereignCloudStack/cluster-stack-operator by arithmetic
(`tests.benchmarks.clusterstacks.arithmetic`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvloop
from tests.benchmarks.clusterstacks import arithmetic, catalog
from tests.benchmarks.clusterstacks.catalog import HOME, V1BETA1, tag_of
from tests.benchmarks.clusterstacks.observing import OWNER, REPOSITORY, AddonTimes, CountedHost
from tests.benchmarks.clusterstacks.progress import Progress, folder_of, progress_of, save
from tests.benchmarks.fleet import PATIENCE, Figures, _counted, _each
from tests.benchmarks.metering.processes import (
    Meters,
    Sample,
    idle,
    percentiles,
    reconciles,
    sent,
    spent,
    summed,
    table_of_calls,
    writes,
)
from tests.benchmarks.runtimes import running

from hortus.cli.up.state import StateDirectory
from hortus.domains.stacks.types import CLUSTER_STACK_RELEASES, CLUSTER_STACKS, STACK_POLICIES
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.rollouts.types import ROLLOUT_POLICIES
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists
from hortus.kube.objects import Object, Resource

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_CONTROL_PLANES = Resource("controlplane.cluster.x-k8s.io", "v1beta1", "kubeadmcontrolplanes", "KubeadmControlPlane")
_UPGRADED = catalog.stack_of(0)
"""The stack that all Clusters use."""
_CONTROLLERS = ("clusterstack", "clusterstackrelease", "clusteraddon")


class Benchmark:
    """One fleet and its figures."""

    def __init__(self, folder: Path, progress: Progress, options: Any, client: Client, host: CountedHost) -> None:
        self.folder = folder
        self.progress = progress
        self.options = options
        self.client = client
        self.host = host
        self.state = StateDirectory(folder / "state")
        self.meters = Meters(self.state, client)
        self.addons = AddonTimes(client)
        self.found: dict[str, Figures] = {}

    async def run(self) -> dict[str, Figures]:
        async with self.addons.running():
            for phase in (self.catalogue, self.install, self.rest, self.upgrade, self.minor, self.restart):
                name = phase.__name__
                if name in self.options.skip or name in self.progress.prepared:
                    continue
                if name == "upgrade" and "minor" in self.progress.prepared:
                    continue  # the Clusters have left the stack for the minor before
                load = os.getloadavg()[0]
                async with asyncio.timeout(self.options.patience):
                    self.found[name] = {**await phase(), "load_before": load, "load_after": os.getloadavg()[0]}
                print(name, json.dumps(rounded(self.found[name])), flush=True)
                if name in ("catalogue", "install", "minor"):
                    self.progress.prepared.append(name)
                save(self.folder, self.progress)
        stacks = len(catalog.releases_of(self.progress.releases))
        self.found["cluster-stack-operator"] = arithmetic.cluster_stack_operator(
            self.progress.releases,
            self.progress.clusters,
            stacks=stacks,
            charts=len(catalog.CHARTS),
            objects=catalog.OBJECTS,
        )
        return self.found

    def class_name(self) -> str:
        return tag_of(_UPGRADED, f"v{self.progress.version}")

    def name(self, number: int) -> str:
        return f"bench-{number}"

    # The phases.

    async def catalogue(self) -> Figures:
        """Offer all releases; those of the stack that is upgraded are approved up to the first version."""
        stacks = catalog.releases_of(self.progress.releases)
        with contextlib.suppress(AlreadyExists):
            await self.client.create(_NAMESPACES, {"metadata": {"name": HOME}})
        await self.client.create(STACK_POLICIES, catalog.approval(_UPGRADED, ["v1"]))
        made = self.progress.releases - len(stacks[_UPGRADED]) + 1
        before, host, began = await self.meters.sample(), Counter(self.host.calls), time.monotonic()
        listed = list(stacks.items())
        async with _counted(self.client, CLUSTER_STACK_RELEASES, made, _ready):
            await _each(len(listed), lambda number: self.client.create(CLUSTER_STACKS, catalog.stack(*listed[number])))
        wall, after = time.monotonic() - began, await self.meters.sample()
        return {
            "releases": float(made),
            "stacks": float(len(stacks)),
            "seconds_to_all_ready": wall,
            **self._cost(before, after, made, "release"),
            **await self._reach_rest(before, host, made, "release"),
        }

    async def install(self) -> Figures:
        count, class_name = self.progress.clusters, self.class_name()
        before, host, began = await self.meters.sample(), Counter(self.host.calls), time.monotonic()
        created: dict[str, float] = {}
        numbers = iter(range(count))

        async def some() -> None:
            for number in numbers:
                created[self.name(number)] = time.monotonic()
                await self.client.create(V1BETA1, catalog.cluster(self.name(number), class_name))
                await self.addons.has(self.name(number), class_name)

        await asyncio.gather(self.addons.until(class_name, count), *(some() for _ in range(self.options.at_once)))
        wall, after = time.monotonic() - began, await self.meters.sample()
        late = [at - created[name] for (name, _), at in self.addons.installed.items() if name in created]
        figures = {
            "clusters": float(count),
            "at_once": float(self.options.at_once),
            "seconds_to_all_installed": wall,
            **percentiles(late, "created_to_installed"),
            **self._cost(before, after, count, "cluster"),
            **await self._reach_rest(before, host, count, "cluster"),
        }
        await self._rings()
        return figures

    async def _rings(self) -> None:
        """Label the clusters for the stages of a rollout."""

        async def one(number: int) -> None:
            labels = {catalog.RING: catalog.ring_of(number)}
            await self.client.patch(SECRETS, f"{self.name(number)}-kubeconfig", {"metadata": {"labels": labels}}, HOME)

        await _each(self.progress.clusters, one)
        await self.settled()

    async def rest(self) -> Figures:
        before, host, began = await self.meters.sample(), Counter(self.host.calls), time.monotonic()
        await asyncio.sleep(self.options.rest)
        after, seconds = await self.meters.sample(), time.monotonic() - began
        return {
            "seconds": seconds,
            **{f"{name}_cpu_percent": used / seconds * 100 for name, used in spent(before, after).items()},
            **{f"sent_{call}": count for call, count in sent(before, after).items()},
            "writes": writes(before, after),
            **self._renders(before, after),
            **self.host.since(host),
            **{f"{name}_reconciles": reconciles(before, after, name) for name in _CONTROLLERS},
            **self.meters.memory(),
        }

    async def upgrade(self) -> Figures:
        """Approve the next version; name its class in all Clusters as soon as it is ready."""
        count = self.progress.clusters
        with contextlib.suppress(AlreadyExists):
            await self.client.create(ROLLOUT_POLICIES, catalog.waves(self.options.concurrency))
        await self.settled()
        self.progress.version += 1
        class_name = self.class_name()
        before, host, began = await self.meters.sample(), Counter(self.host.calls), time.monotonic()
        approved = [f"v{number + 1}" for number in range(self.progress.version)]
        await self.client.patch(STACK_POLICIES, _UPGRADED, {"spec": {"versions": approved}}, HOME)
        await self._release_ready(class_name)
        ready = time.monotonic() - began
        change = {"spec": {"topology": {"class": class_name}}}
        await _each(count, lambda number: self.client.patch(V1BETA1, self.name(number), change, HOME))
        named = time.monotonic() - began
        await self.addons.until(class_name, count)
        wall, after = time.monotonic() - began, await self.meters.sample()
        return {
            "clusters": float(count),
            "approved_to_release_ready_s": ready,
            "approved_to_all_named_s": named,
            "approved_to_all_installed_s": wall,
            **percentiles(self.addons.after(began, class_name), "approved_to_installed"),
            **self._cost(before, after, count, "cluster"),
            **await self._reach_rest(before, host, count, "cluster"),
        }

    async def minor(self) -> Figures:
        """Offer the stack for the next Kubernetes minor; name its class and version in all Clusters.

        Cluster API holds each control plane back by the hook BeforeClusterUpgrade until the addons are installed.
        """
        count, class_name = self.progress.clusters, tag_of(_UPGRADED, "v1", catalog.NEXT_MINOR)
        before, host, began = await self.meters.sample(), Counter(self.host.calls), time.monotonic()
        await self.client.create(CLUSTER_STACKS, catalog.stack(_UPGRADED, ["v1"], catalog.NEXT_MINOR))
        await self._release_ready(class_name)
        ready = time.monotonic() - began
        change = {"spec": {"topology": {"class": class_name, "version": catalog.NEXT_KUBERNETES}}}
        async with _counted(self.client, _CONTROL_PLANES, count, _is_upgraded):
            await _each(count, lambda number: self.client.patch(V1BETA1, self.name(number), change, HOME))
            named = time.monotonic() - began
            await self.addons.until(class_name, count)
            installed = time.monotonic() - began
        wall, after = time.monotonic() - began, await self.meters.sample()
        return {
            "clusters": float(count),
            "offered_to_release_ready_s": ready,
            "offered_to_all_named_s": named,
            "offered_to_all_installed_s": installed,
            "offered_to_all_control_planes_upgraded_s": wall,
            **percentiles(self.addons.after(began, class_name), "offered_to_installed"),
            **self._cost(before, after, count, "cluster"),
            **await self._reach_rest(before, host, count, "cluster"),
        }

    async def _release_ready(self, name: str) -> None:
        async with contextlib.aclosing(self.client.watch(CLUSTER_STACK_RELEASES, HOME, initial_events=True)) as events:
            async for event in events:
                if event.object["metadata"].get("name") == name and _ready(event.object):
                    return

    async def restart(self) -> Figures:
        """End the controllers; their supervisor starts others, which look at everything once.

        The controllers of the stacks are steady before those of the inventory, which connects to each cluster.
        """
        before, host = await self.meters.sample(), Counter(self.host.calls)
        old, began, stacks = self.meters.pid("controllers"), time.monotonic(), 0.0
        os.kill(old, signal.SIGTERM)
        while (after := await self._restarted(old)) is None or not idle(after):
            if after is not None and not stacks:
                stacks = time.monotonic() - began
            await asyncio.sleep(0.2)
        wall = time.monotonic() - began
        fresh = Sample(dict.fromkeys(after.cpu, 0.0), before.server, {})
        return {
            "seconds_until_stacks_steady": stacks or wall,
            "seconds_until_all_steady": wall,
            "controllers_cpu_s": after.cpu["controllers"],
            "renderers_cpu_s": after.cpu["renderers"],
            **{f"sent_{call}": number for call, number in sent(fresh, after).items()},
            "writes": writes(before, after),
            **self._renders(fresh, after),
            **self.host.since(host),
            **{f"{name}_reconciles": reconciles(fresh, after, name) for name in _CONTROLLERS},
            **self.meters.memory(),
        }

    async def _restarted(self, old: int) -> Sample | None:
        """The figures once the stacks' controllers have looked at each object, and nothing waits or is in work."""
        run = self.state.run()
        if run is None or run.processes.get("controllers", old) == old:
            return None
        try:
            found = await self.meters.sample()
        except OSError:
            return None
        done = summed(found.controllers, "controller_runtime_reconcile_total", "controller")
        return found if idle(found, *_CONTROLLERS) and done["clusteraddon"] >= self.progress.clusters else None

    # Parts.

    async def settled(self) -> None:
        """Return when nobody has written for a while, and nothing waits."""
        before = await self.meters.sample()
        async with asyncio.timeout(PATIENCE):
            while True:
                await asyncio.sleep(self.options.pause)
                after = await self.meters.sample()
                if writes(before, after) == 0 and idle(after):
                    return
                before = after

    async def _reach_rest(self, before: Sample, host: Counter[str], count: int, unit: str) -> Figures:
        """The figures of a phase that are complete only once all is quiet."""
        await self.settled()
        after = await self.meters.sample()
        if self.options.calls:
            print(table_of_calls(before, after, count), flush=True)
        return {
            f"writes_per_{unit}": writes(before, after) / count,
            **{f"sent_{call}_per_{unit}": number / count for call, number in sent(before, after).items()},
            **self._renders(before, after),
            **self.host.since(host),
            **{f"{name}_reconciles_per_{unit}": reconciles(before, after, name) / count for name in _CONTROLLERS},
            **self.meters.memory(),
        }

    def _renders(self, before: Sample, after: Sample) -> Figures:
        name = "hortus_stack_renders_total"
        found = summed(after.controllers, name, "result")
        found.subtract(summed(before.controllers, name, "result"))
        return {f"renders_{result}": float(found[result]) for result in ("rendered", "reused")}

    def _cost(self, before: Sample, after: Sample, count: int, unit: str) -> Figures:
        return {f"{name}_cpu_ms_per_{unit}": used / count * 1000 for name, used in spent(before, after).items()}


def _ready(found: Object) -> bool:
    return bool((found.get("status") or {}).get("ready"))


def _is_upgraded(control_plane: Object) -> bool:
    return (control_plane.get("status") or {}).get("version") == catalog.NEXT_KUBERNETES


def rounded(figures: Figures) -> Figures:
    return {name: round(value, 4) for name, value in figures.items()}


def _config(host: str, options: Any) -> str:
    flags = (
        f"source: github, release-repository: {OWNER}/{REPOSITORY}, github-url: '{host}', "
        f"stacks-resync: {options.resync:g}s, inventory-labels: {catalog.RING}"
    )
    return (
        "simulation: {nodes: false, workload_clusters: 0}\n"
        "apiserver: {limits: {connections: 19000, watches: 18500}}\n"
        f"controllers: {{{flags}{options.flags and ', '}{options.flags}}}\n"
    )


async def measure(folder: Path, progress: Progress, options: Any) -> dict[str, Figures]:
    """Bring a fleet up, or up again, and go through the phases."""
    host, config = CountedHost(folder / "releases"), folder / "up.yaml"
    async with host.server, contextlib.AsyncExitStack() as stack:
        config.write_text(_config(host.server.url, options))
        entered = running(folder, config, port=progress.port)
        await asyncio.to_thread(entered.__enter__)
        stack.push_async_callback(asyncio.to_thread, entered.__exit__, None, None, None)
        client = await stack.enter_async_context(Client.from_kubeconfig(folder / "state" / "kubeconfig"))
        return await Benchmark(folder, progress, options, client, host).run()


def run(words: Sequence[str] = ()) -> dict[str, Figures]:
    parser = argparse.ArgumentParser(prog="tests.benchmarks.stacks")
    parser.add_argument("releases", nargs="?", type=int, default=20)
    parser.add_argument("clusters", nargs="?", type=int, default=100)
    parser.add_argument("--rest", type=float, default=60.0, help="seconds of rest that are measured")
    parser.add_argument("--resync", type=float, default=300.0, help="--stacks-resync, seconds: the poll of the host")
    parser.add_argument("--concurrency", type=int, default=200, help="Clusters of a stage that are upgraded at once")
    parser.add_argument("--at-once", type=int, default=50, help="Clusters that are installed at the same time")
    parser.add_argument("--skip", action="append", default=[], help="a phase to leave out")
    parser.add_argument("--flags", default="", help="further flags of the controllers, as in the configuration file")
    parser.add_argument("--calls", action="store_true", help="print the calls of each phase by kind")
    parser.add_argument("--patience", type=float, default=3600.0, help="seconds until a phase is given up")
    parser.add_argument("--pause", type=float, default=3.0, help="seconds without a write that end a phase")
    parser.add_argument("--state", type=Path, help="folder to keep; a later run with it goes on from there")
    options = parser.parse_args(words)
    with folder_of(options) as folder:
        progress = progress_of(folder, options)
        save(folder, progress)
        return uvloop.run(measure(folder, progress, options))


if __name__ == "__main__":
    print(json.dumps({name: rounded(one) for name, one in run(sys.argv[1:]).items()}, indent=2))
