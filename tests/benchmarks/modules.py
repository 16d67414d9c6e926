"""Kymas with five modules each: `python -m tests.benchmarks.modules [KYMAS] [--rest S] [--delay S] [--workers N]`.

A whole `hortus up`: the API server with SQLite, the simulated garden with a logical cluster for each Kyma, the
registry, and the controllers of all domains as a user runs them. This process makes the objects, plays the workloads of
all clusters (`tests.benchmarks.kymas.workloads`) and observes. In order: installation, rest, a channel move after the
roll-out delay, edits of Kymas in clusters, a channel move by a RolloutPolicy, a version that is pushed again. During
both moves users edit Kymas, too.

`--fleet FOLDER` installs the fleet there, or goes on with the one that is there; `--copy` leaves it as it is, so that
`--only move` and the other phases can each be run from the same state.

Next to the figures stand those of kyma-project/lifecycle-manager by arithmetic (`tests.benchmarks.kymas.arithmetic`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import uvloop
from tests.benchmarks.credentials import cluster
from tests.benchmarks.fleet import PATIENCE, Figures, _built, _counted, _each, _ready, free_port, shoot
from tests.benchmarks.kymas import arithmetic
from tests.benchmarks.kymas.catalog import CONTROL, MODULES, NEW, SYSTEM, kyma, move_channel, publish, push_again
from tests.benchmarks.kymas.keeping import Place, place_of
from tests.benchmarks.kymas.workloads import PlayedWorkloads, cluster_path
from tests.benchmarks.metering.processes import (
    Meters,
    Sample,
    calls,
    percentiles,
    queue_latency,
    reconciles,
    spent,
    table_of_calls,
    writes,
)
from tests.benchmarks.runtimes import running

from hortus.cli.up.state import StateDirectory
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.modules.types import KYMAS
from hortus.engine.rollouts.types import ROLLOUT_POLICIES
from hortus.kube import Client
from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import SHOOTS

_ROOT = Path(__file__).resolve().parents[2]
PHASES = ("install", "rest", "move", "edit", "govern", "push")
POLICY: Object = {
    "apiVersion": ROLLOUT_POLICIES.api_version,
    "kind": "RolloutPolicy",
    "metadata": {"name": "modules", "namespace": "fleet"},
    "spec": {
        "changes": [{"kind": "module", "subjects": ["delta"]}],
        "stages": [{"name": "all", "maxConcurrency": 200, "maxFailures": "1%"}],
    },
}


class Benchmark:
    """One fleet and its figures."""

    def __init__(self, place: Place, clients: tuple[Client, Client], count: int, options: Any) -> None:
        self.place = place
        self.state = state = StateDirectory(place.folder / "state")
        self.client, self.everywhere = clients
        self.count = count
        self.options = options
        self.meters = Meters(state, self.client)
        self.workloads = PlayedWorkloads(self.everywhere)
        self.found: dict[str, Figures] = {}

    def name(self, number: int) -> str:
        return f"bench-{number}"

    async def run(self) -> dict[str, Figures]:
        installed = self.place.kept is not None
        if not installed:
            await self.clusters()
            await publish(self.client, self.state.path)
        async with self.workloads.running():
            for name in ("restart" if installed else "install", *self.options.phases):
                load = os.getloadavg()[0]
                figures: Figures = await getattr(self, name)()
                self.found[name] = {**figures, "load_before": load, "load_after": os.getloadavg()[0]}
                print(name, json.dumps(_rounded(self.found[name])), flush=True)
                if name == "install":
                    self.place.keep(port=self.options.port, kymas=self.count)
        objects = (2 * 7 + 3 * 6) / 5
        self.found["lifecycle-manager"] = arithmetic.lifecycle_manager(
            self.count, modules=5, catalog=10, objects=objects
        )
        return self.found

    # The fleet.

    async def clusters(self) -> None:
        """A Shoot and a GardenerCluster for each Kyma, until all have their kubeconfigs."""
        began = time.monotonic()
        async with (
            Client.from_kubeconfig(self.state.garden_kubeconfig) as garden,
            _counted(garden, SHOOTS, self.count, _built),
        ):
            await _each(self.count, lambda number: garden.create(SHOOTS, shoot(number)))
        async with _counted(self.client, GARDENER_CLUSTERS, self.count, _ready):
            await _each(self.count, lambda number: self.client.create(GARDENER_CLUSTERS, self._cluster(number)))
        await self.settled()
        self.found["before"] = {"seconds": time.monotonic() - began, **self.meters.memory()}
        print("clusters", json.dumps(_rounded(self.found["before"])), flush=True)

    def _cluster(self, number: int) -> Object:
        made = cluster(number)
        made["metadata"]["labels"]["operator.kyma-project.io/kyma-name"] = self.name(number)
        return made

    async def settled(self, pause: float = 3.0) -> None:
        """Return when hardly anybody has written for a while."""
        before = await self.meters.sample()
        async with asyncio.timeout(PATIENCE):
            while True:
                await asyncio.sleep(pause)
                after = await self.meters.sample()
                if writes(before, after) == 0:
                    return
                before = after

    # The phases.

    async def install(self) -> Figures:
        before, began = await self.meters.sample(), time.monotonic()
        async with asyncio.timeout(self.options.patience):
            await _each(self.count, lambda number: self.client.create(KYMAS, kyma(self.name(number))))
            created = time.monotonic() - began
            await self.workloads.until(self.count * 5)
            await self._all_ready()
        wall = time.monotonic() - began
        after = await self.meters.sample()
        figures = {"kymas": float(self.count), "seconds_to_create": created, "seconds_to_all_ready": wall}
        return figures | self._each_kyma(before, after) | await self._reach_rest(before)

    async def _all_ready(self) -> None:
        """Return when every Kyma is Ready."""
        ready: set[str] = set()
        async with contextlib.aclosing(self.client.watch(KYMAS, CONTROL, initial_events=True)) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED") and _ready(event.object):
                    ready.add(event.object["metadata"]["name"])
                if len(ready) == self.count:
                    return

    async def _reach_rest(self, before: Sample) -> Figures:
        """The figures of the end of a phase, once all is quiet."""
        await self.settled()
        after = await self.meters.sample()
        if self.options.calls:
            print(table_of_calls(before, after, self.count), flush=True)
        return {
            "writes_per_kyma": writes(before, after) / self.count,
            **{f"calls_{verb}_per_kyma": count / self.count for verb, count in calls(before, after).items()},
            "kyma_reconciles_per_kyma": reconciles(before, after, "kyma") / self.count,
            "manifest_reconciles_per_module": reconciles(before, after, "manifest") / self.count / 5,
            **queue_latency(before, after, "kyma"),
            **queue_latency(before, after, "manifest"),
            **self.meters.memory(),
        }

    def _each_kyma(self, before: Sample, after: Sample) -> Figures:
        return {f"{name}_cpu_ms_per_kyma": used / self.count * 1000 for name, used in spent(before, after).items()}

    async def restart(self) -> Figures:
        """All processes have begun again with a fleet that is installed: each object is compared once."""
        before, began = await self.meters.sample(), time.monotonic()
        await self.workloads.until(self.count * 5)
        async with asyncio.timeout(self.options.patience):
            while reconciles(before, after := await self.meters.sample(), "manifest") < self.count * 5:
                await asyncio.sleep(5.0)
        await self.settled()
        wall = time.monotonic() - began
        await self._idle()
        return {"seconds": wall, **self._each_kyma(before, after), **await self._reach_rest(before)}

    async def _idle(self, pause: float = 20.0) -> None:
        """Return when nothing was reconciled for a while: what late watches of a restart found has been compared."""
        before = await self.meters.sample()
        async with asyncio.timeout(self.options.patience):
            while True:
                await asyncio.sleep(pause)
                after = await self.meters.sample()
                if not reconciles(before, after, "manifest") and not reconciles(before, after, "kyma"):
                    return
                before = after

    async def rest(self) -> Figures:
        before, began = await self.meters.sample(), time.monotonic()
        await asyncio.sleep(self.options.rest)
        after, seconds = await self.meters.sample(), time.monotonic() - began
        return {
            "seconds": seconds,
            **{f"{name}_cpu_percent": used / seconds * 100 for name, used in spent(before, after).items()},
            **{f"calls_{verb}": count for verb, count in calls(before, after).items()},
            "writes": writes(before, after),
            "kyma_reconciles": reconciles(before, after, "kyma"),
            "manifest_reconciles": reconciles(before, after, "manifest"),
            **self.meters.memory(),
        }

    async def move(self) -> Figures:
        return await self._moved("charlie", self.options.delay, edited="bravo")

    async def _moved(self, module: str, delay: float, *, edited: str) -> Figures:
        before, began, seen = await self.meters.sample(), time.monotonic(), self.workloads.writes
        await move_channel(self.client, module, NEW)
        late = await self._edited(edited)
        async with asyncio.timeout(delay + self.options.patience):
            await self.workloads.until(self.count, module=module, version=NEW)
        wall, after = time.monotonic() - began, await self.meters.sample()
        got, ready = (
            {key[0]: at - began for key, at in times.items() if key[1:] == (module, NEW)}
            for times in (self.workloads.versions, self.workloads.installed)
        )
        return {
            "seconds": wall,
            **late,
            **percentiles(list(got.values()), "manifest_written"),
            **percentiles([ready[name] - got[name] for name in ready], "written_to_ready"),
            **self._each_kyma(before, after),
            **await self._reach_rest(before),
            "manifest_writes_per_kyma": (self.workloads.writes - seen) / self.count,
            **_spread(list(got.values()), delay),
        }

    async def edit(self) -> Figures:
        before = await self.meters.sample()
        late = await self._edited("alpha")
        after = await self.meters.sample()
        return {**late, **self._each_kyma(before, after), **await self._reach_rest(before)}

    async def _edited(self, module: str) -> Figures:
        """A user's edits, so many a second: another channel for a module, which its Manifest shows."""
        count, rate = min(self.count, self.options.edits), self.options.edit_rate
        sent: dict[str, float] = {}
        body = orjson.dumps([{"op": "add", "path": f"/spec/modules/{MODULES.index(module)}/channel", "value": "fast"}])
        began, every = time.monotonic(), self.count // count

        async def one(number: int) -> None:
            name = self.name(number * every)
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            path = f"{cluster_path(name)}{KYMAS.path(SYSTEM)}/default"
            sent[name] = time.monotonic()
            await self.everywhere.request("PATCH", path, body, content_type="application/json-patch+json")

        await _each(count, one)
        deadline = time.monotonic() + PATIENCE
        late: list[float] = []
        while time.monotonic() < deadline and len(late) < count:
            await asyncio.sleep(0.2)
            arrived = self.workloads.channels
            late = [arrived[key] - at for name, at in sent.items() if (key := (name, module, "fast")) in arrived]
        return {
            "edits": float(len(sent)),
            "edits_a_second": rate,
            "edits_lost": float(count - len(late)),
            **percentiles(late, "edit_to_manifest"),
        }

    async def govern(self) -> Figures:
        await self.client.create(ROLLOUT_POLICIES, POLICY)
        await self.settled()
        return await self._moved("delta", self.options.delay, edited="echo")

    async def push(self) -> Figures:
        """Another content under the version of `echo` that all clusters have."""
        before, began, seen = await self.meters.sample(), time.monotonic(), dict(self.workloads.generations)
        await push_again(self.state.path, "echo", "1.0.0")
        times: dict[str, float] = {}
        async with asyncio.timeout(self.options.delay + 900):
            while len(times) < self.count:
                await asyncio.sleep(0.2)
                for key, (generation, at) in self.workloads.generations.items():
                    if key[1] == "echo" and generation > seen[key][0]:
                        times.setdefault(key[0], at - began)
        after = await self.meters.sample()
        return {
            **percentiles(list(times.values()), "manifest_written"),
            **_spread(list(times.values()), self.options.delay),
            **self._each_kyma(before, after),
            **await self._reach_rest(before),
        }


def _spread(seconds: Sequence[float], delay: float) -> Figures:
    """The share of the clusters in the fullest and the emptiest tenth of the delay."""
    tenths = [0] * 10
    for one in seconds:
        tenths[min(9, int(one / delay * 10))] += 1
    shares = [100 * tenth / len(seconds) for tenth in tenths]
    return {"fullest_tenth_percent": max(shares), "emptiest_tenth_percent": min(shares)}


def _rounded(figures: Figures) -> Figures:
    return {name: round(value, 4) for name, value in figures.items()}


def _config(options: Any) -> str:
    workers = ", ".join(f"max-concurrent-{kind}-reconciles: {options.workers}" for kind in ("kyma", "manifest"))
    flags = f"module-upgrade-rollout-max-delay: {options.delay:g}s, {workers}"
    return (
        "simulation: {create_duration: 0.01, schedule_delay: 0, care_period: 0.01, nodes: false, workload_clusters: 0,"
        " sync_period: 86400}\n"
        "apiserver: {limits: {connections: 19000, watches: 18500}}\n"
        f"controllers: {{{flags}{options.flags and ', '}{options.flags}}}\n"
    )


async def measure(place: Place, count: int, options: Any) -> dict[str, Figures]:
    state = StateDirectory(place.folder / "state")
    async with (
        Client.from_kubeconfig(state.kubeconfig) as client,
        Client.from_kubeconfig(state.simulation_kubeconfig) as everywhere,
    ):
        return await Benchmark(place, (client, everywhere), count, options).run()


def run(words: Sequence[str] = ()) -> dict[str, Figures]:
    parser = argparse.ArgumentParser(prog="tests.benchmarks.modules")
    parser.add_argument("kymas", nargs="?", type=int, default=500)
    parser.add_argument("--rest", type=float, default=300.0, help="seconds of rest that are measured")
    parser.add_argument("--delay", type=float, default=300.0, help="--module-upgrade-rollout-max-delay, seconds")
    parser.add_argument(
        "--workers", type=int, default=1, help="reconciles of Kymas, and of Manifests, at the same time"
    )
    parser.add_argument("--skip", action="append", default=[], help="a phase to leave out")
    parser.add_argument("--flags", default="", help="further flags of the controllers, as in the configuration file")
    parser.add_argument("--calls", action="store_true", help="print the calls of each phase by kind")
    parser.add_argument("--patience", type=float, default=3600.0, help="seconds until a phase is given up")
    parser.add_argument("--fleet", type=Path, help="a folder that keeps the fleet, or has one from before")
    parser.add_argument("--copy", action="store_true", help="run on a copy of the fleet")
    parser.add_argument("--only", action="append", default=[], help="a phase to run after the installation, no other")
    parser.add_argument("--edits", type=int, default=500, help="the most edits of users in a phase")
    parser.add_argument("--edit-rate", type=float, default=5.0, help="edits a second")
    options = parser.parse_args(words)
    chosen = options.only or PHASES[1:]
    options.phases = [phase for phase in PHASES[1:] if phase in chosen and phase not in options.skip]
    with place_of(options.fleet, copied=options.copy, scratch=_ROOT) as place:
        kept = place.kept
        options.port = kept.port if kept is not None else free_port()
        config = place.folder / "up.yaml"
        config.write_text(_config(options))
        with running(place.folder, config, port=options.port):
            return uvloop.run(measure(place, kept.kymas if kept is not None else options.kymas, options))


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1:]), indent=2))
