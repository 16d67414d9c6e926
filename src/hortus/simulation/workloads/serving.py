"""Workloads of simulated clusters: Deployments, DaemonSets and StatefulSets run, operators of modules do their work.

Nodes of a simulated cluster run no containers. A Deployment or DaemonSet is rolled out as its controller would do it
(`running`). A StatefulSet gets the status of one that runs, some time after it appears or changes; a resource of a
module's group gets `status.state: Ready`. A workload whose annotation `simulation.hortus.dev/workload` is `broken`
never becomes available, and a resource with the same annotation is in state Error. Each cluster costs a few watches,
so that only so many clusters as the settings say are served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import msgspec
import structlog

from hortus.engine.backoff import Backoff
from hortus.kube import Client, Clock, ConnectionSettings
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, Resource, key_of
from hortus.simulation.garden.kinds import LOGICAL_CLUSTERS
from hortus.simulation.garden.workload import CRDS
from hortus.simulation.settings import GardenSettings
from hortus.simulation.workloads.behaviour import is_broken, settled
from hortus.simulation.workloads.pods import KubeletPace
from hortus.simulation.workloads.running import RunningWorkloads

MODULE_GROUP = "operator.kyma-project.io"
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
_OWN_KINDS = ("Kyma", "Manifest", "ModuleReleaseMeta", "ModuleTemplate", "Watcher")
"""Kinds of the group that no module's operator reconciles."""
_PREFIXES = ("shoot--", "capi--")
"""Begin the names of logical clusters that are workload clusters."""
_random = Random()  # noqa: S311 - spreads clusters
_PAUSES = Backoff(first=1.0, cap=10.0)
"""After watches that failed, one after the other: a cluster that sleeps is asked every ten seconds."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
Handle = Callable[[Resource, Object, bool], Awaitable[None]]
"""Takes an object, and True when it is gone or going."""


class SimulatedWorkloads:
    """Serves the workload clusters of a management cluster. `management` is administrator of all of them."""

    def __init__(self, management: Client, *, settings: GardenSettings, clock: Clock) -> None:
        self._management = management
        self._settings = settings
        self._clock = clock
        self._kubelet = KubeletPace(
            start=settings.scaled(settings.workload_duration),
            restart_period=settings.scaled(settings.pod_restart_period),
        )
        self._clusters: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        await self._until_cancelled(follow(self._management, LOGICAL_CLUSTERS, self._cluster, self._clock))

    async def rest(self) -> None:
        """Until it is cancelled, serve the clusters of `begin` alone."""
        await self._until_cancelled(asyncio.Event().wait())

    async def _until_cancelled(self, work: Awaitable[object]) -> None:
        try:
            await work
        finally:
            tasks = list(self._clusters.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _cluster(self, resource: Resource, cluster: Object, gone: bool) -> None:
        name = key_of(cluster).name
        if gone:
            if (task := self._clusters.pop(name, None)) is not None:
                task.cancel()
            return
        if name.startswith(_PREFIXES) and len(self._clusters) < self._settings.workload_clusters:
            self.begin(name)

    def begin(self, name: str) -> None:
        """Run the workloads of one cluster from now on."""
        if name not in self._clusters:
            self._clusters[name] = asyncio.create_task(self._serve(name), name=f"workloads of {name}")

    async def _serve(self, name: str) -> None:
        access = self._management.access
        access = msgspec.structs.replace(access, server=f"{access.server.rstrip('/')}/clusters/{name}")
        settings = ConnectionSettings(connections=16, user_agent="hortus-simulation")
        pause = self._settings.scaled(self._settings.workload_duration)
        async with Client(access, settings=settings) as client, asyncio.TaskGroup() as group:
            cluster = _Cluster(client, group, pause=pause, clock=self._clock)
            for resource, handle in ((STATEFUL_SETS, cluster.run), (CRDS, cluster.defined)):
                group.create_task(follow(client, resource, handle, self._clock))
            running = RunningWorkloads(client, self._kubelet, clock=self._clock, pod_objects=self._settings.pod_objects)
            group.create_task(running.run())


class _Cluster:
    """The controller of StatefulSets and the operators of modules in one cluster."""

    def __init__(self, client: Client, group: asyncio.TaskGroup, *, pause: float, clock: Clock) -> None:
        self._client = client
        self._group = group
        self._pause = pause
        self._clock = clock
        self._following: dict[str, asyncio.Task[None]] = {}

    async def run(self, resource: Resource, obj: Object, gone: bool) -> None:
        """The work of the controller of StatefulSets."""
        if not gone:
            self._report(resource, obj, stateful_set_status(obj))

    async def operate(self, resource: Resource, obj: Object, gone: bool) -> None:
        """The work of a module's operator on its resource."""
        if not gone:
            self._report(resource, obj, {"state": "Error" if is_broken(obj) else "Ready"})

    async def defined(self, resource: Resource, crd: Object, gone: bool) -> None:
        """Begin with a kind of the modules' group that is defined, end with one that is not any more."""
        spec, name = crd["spec"], key_of(crd).name
        if spec["group"] != MODULE_GROUP or spec["names"]["kind"] in _OWN_KINDS:
            return
        if gone:
            if (task := self._following.pop(name, None)) is not None:
                task.cancel()
        elif name not in self._following:
            operator = follow(self._client, _resource_of(spec), self.operate, self._clock)
            self._following[name] = self._group.create_task(operator)

    def _report(self, resource: Resource, obj: Object, status: Object) -> None:
        if not settled(obj, status):
            self._group.create_task(self._write(resource, obj, status))

    async def _write(self, resource: Resource, obj: Object, status: Object) -> None:
        await self._clock.sleep(self._pause)
        key = key_of(obj)
        try:
            await self._client.patch(resource, key.name, {"status": status}, key.namespace, subresource="status")
        except KubeError as error:
            # Deleted meanwhile, or the server stops; a change of the object is another event.
            _log.debug("a status was not written", object=str(key), error=str(error))


async def follow(client: Client, resource: Resource, handle: Handle, clock: Clock) -> None:
    """Call `handle` with each object as it is and as it becomes; a watch that failed begins again. Never returns."""
    failures = 0
    while True:
        try:
            async with client.watch(resource) as events:
                async for event in events:
                    failures = 0
                    if event.type != "BOOKMARK":
                        going = event.object["metadata"].get("deletionTimestamp") is not None
                        await handle(resource, event.object, going or event.type == "DELETED")
        except KubeError as error:
            # A kind that is not served yet, a cluster that is gone: events of theirs begin and end this task.
            _log.debug("a watch failed", resource=resource.plural, error=str(error))
        await clock.sleep(_PAUSES.delay(failures, random=_random))
        failures += 1


def _resource_of(spec: dict[str, Any]) -> Resource:
    version = next(one["name"] for one in spec["versions"] if one["served"])
    names = spec["names"]
    return Resource(spec["group"], version, names["plural"], names["kind"], namespaced=spec["scope"] == "Namespaced")


def stateful_set_status(obj: Object) -> Object:
    """The status of a StatefulSet that is rolled out, or of a broken one that waits."""
    wanted = obj["spec"].get("replicas")
    replicas = 1 if wanted is None else wanted
    running = 0 if is_broken(obj) else replicas
    return {
        "observedGeneration": obj["metadata"].get("generation", 1),
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": running,
        "availableReplicas": running,
    }
