"""The controllers of Deployments and DaemonSets in one simulated cluster.

They own the status of Deployments and DaemonSets and, where pods are objects, the pods of DaemonSets. They watch both
kinds, and Nodes from the first DaemonSet on until the last one is gone. A workload that has settled costs nothing: no
timer, no write. The pods are kept in memory; when the simulation begins again they are read from the objects, where
there are any, else from the status. They never change a spec.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, TypeVar

from hortus.engine import Caches, Change, Controller, Result, Source, Trigger, Watch, without_managed_fields
from hortus.engine.metrics import EngineMetrics
from hortus.kube import Client, Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, Resource, key_of
from hortus.simulation.workloads import daemons, deployments
from hortus.simulation.workloads.behaviour import is_broken, settled
from hortus.simulation.workloads.mirror import PodObjects
from hortus.simulation.workloads.placement import Node
from hortus.simulation.workloads.pods import KubeletPace, next_due, node_of

DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
_WORKERS: Final = 4
"""Workloads of one cluster that are worked on at the same time."""
_TICK: Final = 0.001
"""Seconds. A timer may ring a little before its time."""
_Pods = TypeVar("_Pods", daemons.Pods, deployments.Pods)


class RunningWorkloads:
    """Runs the Deployments and DaemonSets of the cluster that `client` leads to."""

    def __init__(self, client: Client, kubelet: KubeletPace, *, clock: Clock, pod_objects: bool = False) -> None:
        self._caches = Caches(client, clock=clock)
        metrics = EngineMetrics()
        self._daemons = _DaemonRunner(client, self._caches, kubelet, clock, pod_objects=pod_objects)
        self._controllers = [
            _DeploymentRunner(client, self._caches, kubelet, clock).controller(metrics),
            self._daemons.controller(metrics),
        ]

    async def run(self) -> None:
        """Until it is cancelled."""
        self._caches.start()
        try:
            async with asyncio.TaskGroup() as group:
                for controller in self._controllers:
                    # A cluster that sleeps has no first list; the other kind does not wait for it.
                    group.create_task(controller.start())
            await asyncio.Event().wait()
        finally:
            await asyncio.gather(*(controller.stop() for controller in self._controllers))
            await self._daemons.rest()
            await self._caches.stop()


class _Runner:
    """The shared part of both kinds: the state of each workload, and the write of its status."""

    name: str
    resource: Resource

    def __init__(self, client: Client, caches: Caches, kubelet: KubeletPace, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._kubelet = kubelet
        self._objects = caches.get(self.resource, transform=without_managed_fields)

    def controller(self, metrics: EngineMetrics) -> Controller:
        sources = [*self._sources(), Watch(self._objects)]
        return Controller(self.name, self, sources=sources, workers=_WORKERS, clock=self._clock, metrics=metrics)

    def _sources(self) -> list[Source]:
        return []

    def _current(self, key: ObjectKey) -> Object | None:
        """The workload; None when it is gone or going."""
        obj = self._objects.get(key)
        return None if obj is None or obj["metadata"].get("deletionTimestamp") else obj

    async def reconcile(self, key: ObjectKey) -> Result | None:
        raise NotImplementedError

    async def _report(self, obj: Object, status: Object) -> None:
        if settled(obj, status):
            return
        key = key_of(obj)
        with suppress(NotFound):
            patched = await self._client.patch(
                self.resource, key.name, {"status": status}, key.namespace, subresource="status"
            )
            self._objects.learn(patched)


class _DeploymentRunner(_Runner):
    name = "simulated-deployments"
    resource = DEPLOYMENTS

    def __init__(self, client: Client, caches: Caches, kubelet: KubeletPace, clock: Clock) -> None:
        super().__init__(client, caches, kubelet, clock)
        self._pods: dict[ObjectKey, deployments.Pods] = {}

    async def reconcile(self, key: ObjectKey) -> Result | None:
        obj = self._current(key)
        if obj is None:
            self._pods.pop(key, None)
            return None
        now, before = self._clock.now(), obj.get("status") or {}
        deployment = deployments.deployment_of(obj)
        pods = self._pods[key] if key in self._pods else deployments.recovered(deployment, before, now)
        pods = self._pods[key] = _at_rest(lambda found: deployments.step(deployment, found, self._kubelet, now), pods)
        status = deployments.status_of(deployment, pods, before, now)
        await self._report(obj, status)
        return _again(next_due(pods, now, deployment.minimum_ready), deployments.late_in(deployment, status, now))


class _DaemonRunner(_Runner):
    name = "simulated-daemonsets"
    resource = DAEMON_SETS

    def __init__(
        self, client: Client, caches: Caches, kubelet: KubeletPace, clock: Clock, *, pod_objects: bool
    ) -> None:
        super().__init__(client, caches, kubelet, clock)
        self._pods: dict[ObjectKey, daemons.Pods] = {}
        self._changed = Trigger()
        self._nodes = _Nodes(client, clock, self._all_changed)
        self._mirror = PodObjects(client, clock, self._changed.fire) if pod_objects else None

    def _sources(self) -> list[Source]:
        return [self._changed]

    def _all_changed(self) -> None:
        for key in self._objects:
            self._changed.fire(key)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        obj = self._current(key)
        if obj is None:
            self._pods.pop(key, None)
            if not self._objects:
                await self.rest()
            return None
        nodes = await self._nodes.known()
        now = self._clock.now()
        daemon = daemons.daemon_of(obj, nodes)
        pods = await self._found(key, obj, daemon, now)
        pods = _at_rest(lambda found: daemons.step(daemon, found, self._kubelet, now), pods)
        if self._mirror is not None:
            pods = await self._mirror.write(obj, daemon, pods, now)
        self._pods[key] = pods
        await self._report(obj, daemons.status_of(daemon, pods, now))
        return _again(next_due(daemons.all_pods(pods), now, daemon.minimum_ready))

    async def _found(self, key: ObjectKey, obj: Object, daemon: daemons.Daemon, now: float) -> daemons.Pods:
        known = self._pods.get(key)
        if self._mirror is not None:
            return await self._mirror.read(obj, daemon, known)
        return known if known is not None else daemons.recovered(daemon, obj.get("status") or {}, now)

    async def rest(self) -> None:
        """End the watches that only DaemonSets need."""
        await self._nodes.stop()
        if self._mirror is not None:
            await self._mirror.stop()


class _Nodes:
    """The nodes of a cluster, watched from the first question on."""

    def __init__(self, client: Client, clock: Clock, changed: Callable[[], None]) -> None:
        self._client = client
        self._clock = clock
        self._changed = changed
        self._caches: Caches | None = None
        self._nodes: dict[str, Node] = {}

    async def known(self) -> Mapping[str, Node]:
        if self._caches is None:
            self._caches = Caches(self._client, clock=self._clock)
            self._caches.get(NODES, transform=_slim).subscribe(self._take)
            self._caches.start()
        await self._caches.synced()
        return self._nodes

    async def stop(self) -> None:
        caches, self._caches = self._caches, None
        self._nodes = {}
        if caches is not None:
            await caches.stop()

    def _take(self, change: Change) -> None:
        before = self._nodes.pop(change.key.name, None)
        node = None if change.new is None else node_of(change.new, broken=is_broken(change.new))
        if node is not None:
            self._nodes[node.name] = node
        # The heartbeats of a kubelet change nothing here.
        if node != before and not change.initial:
            self._changed()


def _slim(node: Object) -> Object:
    """The part of a Node that is looked at: 50 nodes of a cluster take kilobytes."""
    metadata, status = node["metadata"], node.get("status") or {}
    return {
        "metadata": {
            name: metadata[name]
            for name in ("name", "resourceVersion", "uid", "labels", "annotations")
            if name in metadata
        },
        "spec": {"taints": (node.get("spec") or {}).get("taints") or []},
        "status": {"conditions": [one for one in status.get("conditions") or () if one["type"] == "Ready"]},
    }


def _at_rest(step: Callable[[_Pods], _Pods], pods: _Pods) -> _Pods:
    """The pods when nothing more happens at this instant; pods that start at once take several steps."""
    while (after := step(pods)) != pods:
        pods = after
    return after


def _again(*times: float | None) -> Result | None:
    known = [seconds for seconds in times if seconds is not None]
    return Result(requeue_after=max(_TICK, min(known))) if known else None
