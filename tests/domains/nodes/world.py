"""Clusters whose nodes have played agents, which follow the Secret of their pool and the hold of their Node."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from tests.domains.agents.fleet.world import FLEET, HOME, NAMESPACES, AgentWorld
from tests.domains.definitions import define
from tests.waiting import until

from hortus.domains.inventory.types import ClusterProfile
from hortus.domains.nodes.changes import CHANGE_KIND, NODE_CHANGE
from hortus.domains.nodes.composition import add_controller
from hortus.domains.nodes.members import NODES, SECRETS
from hortus.domains.nodes.service import APPLIED, CHECKSUM, EXCEPT, HOLD, ROLLED_BACK, SECRET_LABEL, VERSION
from hortus.domains.nodes.settings import NodeSettings
from hortus.domains.rollouts.composition import add_controllers
from hortus.engine import Manager, without_managed_fields
from hortus.engine.deputies import Deputies
from hortus.engine.kubeconfigs import SECRETS as KUBECONFIGS
from hortus.engine.kubeconfigs import sealed
from hortus.engine.remote import RemotePool, RemoteSettings, SecretCredentials
from hortus.engine.rollouts import RolloutGate
from hortus.engine.rollouts.types import (
    ROLLOUT_POLICIES,
    ROLLOUTS,
    ChangeKind,
    PlacementDecision,
    Rollout,
    RolloutPolicy,
)
from hortus.kube import Client
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer

MOST = 2
"""Nodes of a cluster that may be unavailable."""
SYSTEM = "kube-system"
SECRET = "gardener-node-agent-worker-0123456789abcdef"
BAD = "bad"
"""The version with which no node becomes healthy."""
_numbers = itertools.count(1)


class NodeWorld(AgentWorld):
    """A management cluster, and clusters with nodes."""

    def __init__(self, server: TestServer, client: Client, name: str) -> None:
        super().__init__(server, client, name)
        self.clusters: list[str] = []
        self.begun: list[tuple[str, str, str]] = []
        """Cluster, node and version of each configuration that an agent began, in their order."""
        self.most_at_once = 0
        self._busy: dict[str, set[str]] = {}
        self._disks: dict[tuple[str, str], str] = {}
        """The checksum of the configuration that each agent began last, as it remembers it."""
        self._clients: dict[str, Client] = {}
        self._open = AsyncExitStack()

    @asynccontextmanager
    async def controllers(self) -> AsyncIterator[Manager]:
        """One process of controllers, killed at the end."""
        async with Client(self.client.access) as client:
            manager = Manager(client, grace=0.0)
            pool = RemotePool(
                SecretCredentials(client, manager.cache(KUBECONFIGS, namespace=HOME, transform=sealed)),
                settings=RemoteSettings(deny=(), connect_timeout=20.0, timeout=20.0),
            )
            manager.on_stop(pool.close)
            cache = partial(manager.cache, namespace=FLEET, transform=without_managed_fields)
            settings = NodeSettings(most=MOST, patience=600.0)
            gate = RolloutGate(cache)
            add_controllers(
                manager,
                client,
                fleet_namespace=FLEET,
                watched="",
                deputies=Deputies(client, "*", clock=manager.clock),
                change_kinds=[CHANGE_KIND],
            )
            add_controller(manager, client=client, pool=pool, gate=gate, namespace=FLEET, settings=settings)
            async with manager.running():
                yield manager

    async def cluster(self, name: str, *, ring: str, nodes: int) -> None:
        """A member whose nodes have the version `v1`."""
        await self.member(name, labels={"ring": ring})
        self.clusters.append(name)
        labels = {"gardener.cloud/role": "operating-system-config"}
        client = self._clients[name] = await self._open.enter_async_context(self.inside(name))
        await client.apply(NAMESPACES, {"metadata": {"name": SYSTEM}}, field_manager="test")
        await client.create(SECRETS, {"metadata": {"name": SECRET, "namespace": SYSTEM, "labels": labels}})
        await self._publish(name, "v1")
        for number in range(nodes):
            await self.node(name, f"node-{number}", f"v1-{name}")

    async def node(self, cluster: str, name: str, applied: str) -> None:
        metadata = {"name": name, "labels": {SECRET_LABEL: SECRET}, "annotations": {APPLIED: applied}}
        await self._clients[cluster].create(NODES, {"metadata": metadata})
        await self._ready(cluster, name, "True")

    async def close(self) -> None:
        await self._open.aclose()

    async def publish(self, version: str) -> None:
        """A version in all clusters. Its configuration is another one in each, as the addresses in it are."""
        for name in self.clusters:
            await self._publish(name, version)

    async def _publish(self, cluster: str, version: str) -> None:
        annotations = {CHECKSUM: f"{version}-{cluster}", VERSION: version}
        await self._clients[cluster].patch(SECRETS, SECRET, {"metadata": {"annotations": annotations}}, SYSTEM)

    async def policy(self) -> None:
        stages = [
            {"name": "canary", "clusters": {"matchLabels": {"ring": "canary"}}},
            {"name": "rest", "maxConcurrency": 10},
        ]
        spec = {"changes": [{"kind": NODE_CHANGE}], "stages": stages}
        metadata = {"name": "nodes", "namespace": FLEET}
        await self.client.apply(ROLLOUT_POLICIES, {"metadata": metadata, "spec": spec}, field_manager="test")

    async def rollout(self, version: str, phase: str) -> Object:
        """The rollout to a version, once it has the phase."""

        async def look() -> Object | None:
            found = (await self.client.list(ROLLOUTS, FLEET)).items
            return next((one for one in found if _is(one, version, phase)), None)

        return await until(look)

    async def until_nodes(self, name: str, value: str) -> None:
        """Waits until all nodes have this value of an annotation, but for the cluster's name in it."""

        async def look() -> bool:
            for cluster, client in self._clients.items():
                for one in (await client.list(NODES)).items:
                    found = (one["metadata"].get("annotations") or {}).get(name, "")
                    if found.removesuffix(f"-{cluster}") != value:
                        return False
            return True

        await until(look)

    # The played agents.

    @asynccontextmanager
    async def agents(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._play(name)) for name in self.clusters]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _play(self, cluster: str) -> None:
        """The agents of a cluster, with a watch of the Secret and one of the Nodes."""
        secrets: list[Object] = []
        nodes: dict[str, Object] = {}
        client = self._clients[cluster]
        async with asyncio.TaskGroup() as group:

            def look() -> None:
                for name, node in nodes.items():
                    if secrets and self._begins(cluster, node, secrets[-1]):
                        self._disks[cluster, name] = secrets[-1]["metadata"]["annotations"][CHECKSUM]
                        self._busy.setdefault(cluster, set()).add(name)
                        self.most_at_once = max(self.most_at_once, len(self._busy[cluster]))
                        group.create_task(self._apply(cluster, name, secrets[-1]))

            async def follow_secret() -> None:
                async with client.watch(SECRETS, SYSTEM, initial_events=True) as events:
                    async for event in events:
                        if event.type != "BOOKMARK" and event.object["metadata"]["name"] == SECRET:
                            secrets.append(event.object)
                            look()

            group.create_task(follow_secret())
            async with client.watch(NODES, initial_events=True) as events:
                async for event in events:
                    if event.type != "BOOKMARK":
                        nodes[event.object["metadata"]["name"]] = event.object
                        look()

    def _begins(self, cluster: str, node: Object, secret: Object) -> bool:
        known, wanted = node["metadata"]["annotations"], secret["metadata"]["annotations"][CHECKSUM]
        free = known.get(HOLD, "") in ("", f"{EXCEPT}{wanted}")
        name = node["metadata"]["name"]
        done = wanted in (known.get(APPLIED), self._disks.get((cluster, name)))
        return free and not done and name not in self._busy.get(cluster, ())

    async def _apply(self, cluster: str, name: str, secret: Object) -> None:
        known = secret["metadata"]["annotations"]
        self.begun.append((cluster, name, known[VERSION]))
        await self._ready(cluster, name, "False")
        is_bad = known[VERSION] == BAD
        done = {ROLLED_BACK: known[CHECKSUM]} if is_bad else {APPLIED: known[CHECKSUM], ROLLED_BACK: None}
        await self._ready(cluster, name, "True")
        self._busy[cluster].discard(name)
        await self._clients[cluster].patch(NODES, name, {"metadata": {"annotations": done}})

    async def _ready(self, cluster: str, name: str, status: str) -> None:
        since = "2026-01-01T00:00:00Z"
        condition = {"type": "Ready", "status": status, "reason": "Played", "lastTransitionTime": since}
        await self._clients[cluster].patch(NODES, name, {"status": {"conditions": [condition]}}, subresource="status")


def _is(rollout: Object, version: str, phase: str) -> bool:
    return rollout["spec"]["change"]["to"] == version and (rollout.get("status") or {}).get("phase") == phase


@asynccontextmanager
async def node_world(server: TestServer) -> AsyncIterator[NodeWorld]:
    """A fresh management cluster with the CRDs and namespaces, and no member."""
    name = f"nodes-{next(_numbers)}"
    await asyncio.to_thread(server.create_cluster, name)
    async with Client.from_kubeconfig(server.kubeconfig_for(name)) as client:
        await define(server, name, ClusterProfile, ChangeKind, RolloutPolicy, Rollout, PlacementDecision)
        for namespace in (FLEET, HOME):
            await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        made = NodeWorld(server, client, name)
        try:
            yield made
        finally:
            await made.close()
