"""Workloads of simulated clusters: Deployments and StatefulSets run, and operators of modules do their work.

Nodes of a simulated cluster run no containers. A workload gets the status that its controller would write, some time
after it appears or changes; a resource of a module's group gets `status.state: Ready`. A workload whose annotation
`simulation.hortus.dev/workload` is `broken` never becomes available, and a resource with the same annotation is in
state Error. Each cluster costs a few watches, so that only so many clusters as the settings say are served.
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
from hortus.kube.objects import Object, Resource, format_time, key_of
from hortus.simulation.garden.kinds import LOGICAL_CLUSTERS
from hortus.simulation.garden.workload import CRDS
from hortus.simulation.settings import GardenSettings

MODULE_GROUP = "operator.kyma-project.io"
BEHAVIOUR = "simulation.hortus.dev/workload"
BROKEN = "broken"
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
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
        self._clusters: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            await follow(self._management, LOGICAL_CLUSTERS, self._cluster, self._clock)
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
        room = len(self._clusters) < self._settings.workload_clusters
        if name.startswith(_PREFIXES) and name not in self._clusters and room:
            self._clusters[name] = asyncio.create_task(self._serve(name), name=f"workloads of {name}")

    async def _serve(self, name: str) -> None:
        access = self._management.access
        access = msgspec.structs.replace(access, server=f"{access.server.rstrip('/')}/clusters/{name}")
        settings = ConnectionSettings(connections=16, user_agent="hortus-simulation")
        pause = self._settings.scaled(self._settings.workload_duration)
        async with Client(access, settings=settings) as client, asyncio.TaskGroup() as group:
            cluster = _Cluster(client, group, pause=pause, clock=self._clock)
            for resource, handle in ((DEPLOYMENTS, cluster.run), (STATEFUL_SETS, cluster.run), (CRDS, cluster.defined)):
                group.create_task(follow(client, resource, handle, self._clock))


class _Cluster:
    """The controllers of workloads and the operators of modules in one cluster."""

    def __init__(self, client: Client, group: asyncio.TaskGroup, *, pause: float, clock: Clock) -> None:
        self._client = client
        self._group = group
        self._pause = pause
        self._clock = clock
        self._following: dict[str, asyncio.Task[None]] = {}

    async def run(self, resource: Resource, obj: Object, gone: bool) -> None:
        """The work of a workload's controller."""
        if not gone:
            self._report(resource, obj, workload_status(obj, now=format_time(self._clock.now())))

    async def operate(self, resource: Resource, obj: Object, gone: bool) -> None:
        """The work of a module's operator on its resource."""
        if not gone:
            self._report(resource, obj, {"state": "Error" if _is_broken(obj) else "Ready"})

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


def _is_broken(obj: Object) -> bool:
    return bool((obj["metadata"].get("annotations") or {}).get(BEHAVIOUR) == BROKEN)


def settled(obj: Object, status: Object) -> bool:
    """True when an object has a status already, but for the times in it."""
    found = obj.get("status") or {}
    # An API server leaves numbers out that are 0.
    return all(_timeless(found.get(name) or 0) == _timeless(value or 0) for name, value in status.items())


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(one) for one in value]
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if not name.endswith("Time")}
    return value


def workload_status(obj: Object, *, now: str) -> Object:
    """The status of a Deployment or StatefulSet that is rolled out, or of a broken one that waits."""
    wanted = obj["spec"].get("replicas")
    replicas = 1 if wanted is None else wanted
    running = 0 if _is_broken(obj) else replicas
    status = {
        "observedGeneration": obj["metadata"].get("generation", 1),
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": running,
        "availableReplicas": running,
    }
    if obj["kind"] == STATEFUL_SETS.kind:
        return status
    available = running == replicas
    minimum = "MinimumReplicasAvailable" if available else "MinimumReplicasUnavailable"
    progress = "NewReplicaSetAvailable" if available else "ReplicaSetUpdated"
    conditions = [_condition("Available", minimum, now, holds=available), _condition("Progressing", progress, now)]
    return status | {"conditions": conditions}


def _condition(kind: str, reason: str, now: str, *, holds: bool = True) -> Object:
    return {
        "type": kind,
        "status": str(holds),
        "reason": reason,
        "message": "written by the simulation",
        "lastUpdateTime": now,
        "lastTransitionTime": now,
    }
