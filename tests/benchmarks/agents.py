"""Agents at scale: `python -m tests.benchmarks.agents [CLUSTERS] [NODES] [--rest S] [--calls] [--skip PHASE]`.

A whole `hortus up`: the API server with SQLite, the simulated garden with a logical cluster and NODES Node objects for
each Shoot, and the controllers of all domains as a user runs them. The simulation has each cluster's DaemonSets and
Deployments rolled out on these nodes; their pods are no objects. This process makes the objects and observes. In order:
the clusters, the agent for all of them by one AgentConfiguration, rest, a key rotation, one by a RolloutPolicy, and the
controllers started again.

Next to the figures stand those of instana/instana-agent-operator by arithmetic
(`tests.benchmarks.agentfleets.arithmetic`).
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import uvloop
from tests.benchmarks.agentfleets import arithmetic, catalog
from tests.benchmarks.agentfleets.observing import PlacementTimes
from tests.benchmarks.credentials import cluster
from tests.benchmarks.fleet import Figures, _built, _counted, _each, _ready
from tests.benchmarks.metering.processes import (
    Meters,
    Sample,
    idle,
    percentiles,
    reconciles,
    sent,
    spent,
    table_of_calls,
    writes,
)
from tests.benchmarks.runtimes import running

from hortus.cli.up.state import StateDirectory
from hortus.domains.agents.fleet.composition import CONFIGURATIONS, PLACEMENTS
from hortus.domains.agents.types import AGENT_CONFIGURATIONS, AGENT_PLACEMENTS
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.engine import find_condition
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.rollouts.types import ROLLOUT_POLICIES
from hortus.kube import Client
from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import SHOOTS

_ROOT = Path(__file__).resolve().parents[2]
PHASES = ("clusters", "install", "rest", "rotate", "govern", "restart")
REPLICAS = 3
"""Replicas of the sensor, by default."""
NOT_BUILT = 2
"""Objects of a cluster that no operator builds: its namespace, and the Secret with the keys."""


class Benchmark:
    """One fleet and its figures."""

    def __init__(self, folder: Path, clients: tuple[Client, Client], options: Any) -> None:
        self.state = StateDirectory(folder / "state")
        self.client, self.everywhere = clients
        self.options = options
        self.count: int = options.clusters
        self.meters = Meters(self.state, self.client)
        self.placements = PlacementTimes(self.client)
        self.turn = 1
        self.version = ""
        self.objects = 0
        self.found: dict[str, Figures] = {}

    async def run(self) -> dict[str, Figures]:
        async with self.placements.running():
            for name in PHASES:
                if name in self.options.skip:
                    continue
                load = os.getloadavg()[0]
                async with asyncio.timeout(self.options.patience):
                    figures: Figures = await getattr(self, name)()
                self.found[name] = {**figures, "load_before": load, "load_after": os.getloadavg()[0]}
                print(name, json.dumps(rounded(self.found[name])), flush=True)
        self.found["instana-agent-operator"] = arithmetic.instana_agent_operator(
            self.count, self.options.nodes, objects=self.objects - NOT_BUILT, replicas=REPLICAS
        )
        return self.found

    # The phases.

    async def clusters(self) -> Figures:
        """A Shoot and a GardenerCluster for each cluster, until the inventory has joined all of them."""
        before, began = await self.meters.sample(), time.monotonic()
        async with (
            Client.from_kubeconfig(self.state.garden_kubeconfig) as garden,
            _counted(garden, SHOOTS, self.count, _built),
        ):
            await _each(
                self.count, lambda number: garden.create(SHOOTS, catalog.shoot_with(number, self.options.nodes))
            )
        built = time.monotonic() - began
        async with (
            _counted(self.client, GARDENER_CLUSTERS, self.count, _ready),
            _counted(self.client, CLUSTER_PROFILES, self.count, _joined),
        ):
            await _each(self.count, lambda number: self.client.create(GARDENER_CLUSTERS, cluster(number)))
        wall, after = time.monotonic() - began, await self.meters.sample()
        nodes = await self._nodes()
        await self.settled()
        return {
            "clusters": float(self.count),
            "nodes": float(nodes),
            "seconds_to_all_built": built,
            "seconds_to_all_joined": wall,
            **self._cost(before, after),
            **self.meters.memory(),
        }

    async def install(self) -> Figures:
        before, began = await self.meters.sample(), time.monotonic()
        await self.client.create(SECRETS, catalog.keys(self.turn))
        await self.client.create(AGENT_CONFIGURATIONS, catalog.configuration())
        figures = await self._moved(before, began)
        self.objects = len(await self._inventory())
        wanted = self.count * self.options.nodes
        assert self.placements.nodes == wanted, f"agents on {self.placements.nodes} nodes, not {wanted}"
        return {**figures, "nodes_with_an_agent": float(wanted), "objects_per_cluster": float(self.objects)}

    async def rest(self) -> Figures:
        before, began = await self.meters.sample(), time.monotonic()
        await asyncio.sleep(self.options.rest)
        after, seconds = await self.meters.sample(), time.monotonic() - began
        return {
            "seconds": seconds,
            **{f"{name}_cpu_percent": used / seconds * 100 for name, used in spent(before, after).items()},
            **{f"sent_{call}": count for call, count in sent(before, after).items()},
            "writes": writes(before, after),
            "placement_reconciles": reconciles(before, after, PLACEMENTS),
            **self.meters.memory(),
        }

    async def rotate(self) -> Figures:
        """Write another key to the one Secret of the fleet, until the sensors of all clusters run with it."""
        before, began = await self.meters.sample(), time.monotonic()
        self.turn += 1
        await self.client.patch(SECRETS, catalog.KEYS, {"data": catalog.keys(self.turn)["data"]}, catalog.FLEET)
        figures = await self._moved(before, began)
        await _each(self.count, self._has_key)
        return figures

    async def govern(self) -> Figures:
        """The same where a RolloutPolicy admits so many clusters at a time."""
        await self.client.create(ROLLOUT_POLICIES, catalog.policy(self.options.concurrency))
        await self.settled()
        return {"at_once": float(self.options.concurrency), **await self.rotate()}

    async def restart(self) -> Figures:
        """End the controllers; their supervisor starts others, which compare each cluster once."""
        before, old, began = await self.meters.sample(), self.meters.pid("controllers"), time.monotonic()
        os.kill(old, signal.SIGTERM)
        while (after := await self._restarted(old)) is None:
            await asyncio.sleep(0.2)
        wall = time.monotonic() - began
        fresh = Sample(dict.fromkeys(after.cpu, 0.0), before.server, {})
        if self.options.calls:
            print(table_of_calls(before, after, self.count), flush=True)
        return {
            "seconds_until_steady": wall,
            "controllers_cpu_s": after.cpu["controllers"],
            **{f"sent_{call}_per_cluster": count / self.count for call, count in sent(fresh, after).items()},
            "writes": writes(before, after),
            **self.meters.memory(),
        }

    async def _restarted(self, old: int) -> Sample | None:
        """The figures once the new controllers have looked at each cluster, and nothing waits or is in work."""
        run = self.state.run()
        if run is None or run.processes.get("controllers", old) == old:
            return None
        try:
            found = await self.meters.sample()
        except OSError:
            return None
        fresh = Sample(found.cpu, found.server, {})
        return found if idle(found) and reconciles(fresh, found, PLACEMENTS) >= self.count else None

    # Parts.

    async def _moved(self, before: Sample, began: float) -> Figures:
        """The figures of a change, once all clusters run the next version and all is quiet."""
        self.version = await self.placements.until(self.count, other_than=self.version)
        wall, after = time.monotonic() - began, await self.meters.sample()
        placed, ran = self.placements.after(began, self.version)
        figures = {
            "seconds_to_all_running": wall,
            **percentiles(placed, "changed_to_in_place"),
            **percentiles(ran, "changed_to_running"),
            **self._cost(before, after),
        }
        await self.settled()
        after = await self.meters.sample()
        if self.options.calls:
            print(table_of_calls(before, after, self.count), flush=True)
        return {
            **figures,
            "writes": writes(before, after),
            "writes_per_cluster": writes(before, after) / self.count,
            **{f"sent_{call}_per_cluster": number / self.count for call, number in sent(before, after).items()},
            "configuration_reconciles": reconciles(before, after, CONFIGURATIONS),
            "placement_reconciles_per_cluster": reconciles(before, after, PLACEMENTS) / self.count,
            **self.meters.memory(),
        }

    async def settled(self) -> None:
        """Return when nobody has written for a while, and nothing waits."""
        before = await self.meters.sample()
        while True:
            await asyncio.sleep(self.options.pause)
            after = await self.meters.sample()
            if writes(before, after) == 0 and idle(after):
                return
            before = after

    def _cost(self, before: Sample, after: Sample) -> Figures:
        return {f"{name}_cpu_ms_per_cluster": used / self.count * 1000 for name, used in spent(before, after).items()}

    async def _nodes(self) -> int:
        """The Node objects of all clusters."""
        counts: list[int] = []

        async def one(number: int) -> None:
            path = f"{catalog.cluster_path(catalog.name_of(number))}/api/v1/nodes"
            counts.append(len(orjson.loads((await self.everywhere.request("GET", path)).body)["items"]))

        await _each(self.count, one)
        return sum(counts)

    async def _inventory(self) -> list[str]:
        """The objects of the agent in one cluster."""
        found = await self.client.get(AGENT_PLACEMENTS, f"{catalog.AGENT}.{catalog.name_of(0)}", catalog.FLEET)
        return [line for line in found["status"]["inventory"] if "=" not in line]

    async def _has_key(self, number: int) -> None:
        path = f"{catalog.cluster_path(catalog.name_of(number))}{SECRETS.path(catalog.AGENT)}/{catalog.KEYS}"
        found: Object = orjson.loads((await self.everywhere.request("GET", path)).body)
        assert base64.b64decode(found["data"]["key"]) == catalog.key_of_turn(self.turn), f"{path} has an old key"


def _joined(profile: Object) -> bool:
    return (find_condition(profile, "Joined") or {}).get("status") == "True"


def rounded(figures: Figures) -> Figures:
    return {name: round(value, 4) for name, value in figures.items()}


def _config(options: Any) -> str:
    return (
        "simulation: {create_duration: 0.01, schedule_delay: 0, care_period: 0.01, sync_period: 86400, "
        f"workload_clusters: {options.clusters}}}\n"
        "apiserver: {limits: {connections: 19000, watches: 18500}}\n"
        f"controllers: {{{options.flags}}}\n"
    )


async def measure(folder: Path, options: Any) -> dict[str, Figures]:
    state = StateDirectory(folder / "state")
    async with (
        Client.from_kubeconfig(state.kubeconfig) as client,
        Client.from_kubeconfig(state.simulation_kubeconfig) as everywhere,
    ):
        return await Benchmark(folder, (client, everywhere), options).run()


def run(words: Sequence[str] = ()) -> dict[str, Figures]:
    parser = argparse.ArgumentParser(prog="tests.benchmarks.agents")
    parser.add_argument("clusters", nargs="?", type=int, default=50)
    parser.add_argument("nodes", nargs="?", type=int, default=10)
    parser.add_argument("--rest", type=float, default=60.0, help="seconds of rest that are measured")
    parser.add_argument("--concurrency", type=int, default=50, help="clusters that a policy admits at the same time")
    parser.add_argument("--skip", action="append", default=[], help="a phase to leave out")
    parser.add_argument("--flags", default="", help="flags of the controllers, as in the configuration file")
    parser.add_argument("--calls", action="store_true", help="print the calls of each phase by kind")
    parser.add_argument("--patience", type=float, default=1200.0, help="seconds until a phase is given up")
    parser.add_argument("--pause", type=float, default=3.0, help="seconds without a write that end a phase")
    options = parser.parse_args(words)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=_ROOT, prefix=".bench-")))
        config = folder / "up.yaml"
        config.write_text(_config(options))
        stack.enter_context(running(folder, config))
        return uvloop.run(measure(folder, options))


if __name__ == "__main__":
    print(json.dumps({name: rounded(one) for name, one in run(sys.argv[1:]).items()}, indent=2))
