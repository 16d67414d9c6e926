"""The pods of simulated DaemonSets as objects, for programs that look for the pods of an agent.

Owns: pods whose controller is a DaemonSet. It watches pods from the first DaemonSet on. A pod that someone deletes or
evicts is replaced; a pod that is created has a node, an address and the status of a running container.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from hortus.engine import Cache, Caches, Change, by_owner_uid, to_owner, without_managed_fields
from hortus.kube import Client, Clock
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource, format_time, parse_time
from hortus.simulation.workloads.daemons import Daemon, Pods
from hortus.simulation.workloads.placement import tolerations
from hortus.simulation.workloads.pods import Pod

PODS: Final = Resource("", "v1", "pods", "Pod")
REVISION: Final = "controller-revision-hash"
_OWNER: Final = "owner"
_DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet")
_owners: Final = to_owner(_DAEMON_SETS)


class PodObjects:
    """Reads and writes the pods of DaemonSets. `changed` is called with the DaemonSet of each pod that changes."""

    def __init__(self, client: Client, clock: Clock, changed: Callable[[ObjectKey], None]) -> None:
        self._client = client
        self._clock = clock
        self._changed = changed
        self._caches: Caches | None = None

    async def stop(self) -> None:
        """End the watch."""
        caches, self._caches = self._caches, None
        if caches is not None:
            await caches.stop()

    async def read(self, owner: Object, daemon: Daemon, known: Pods | None) -> Pods:
        """The pods of a DaemonSet without those that are gone; those that are found when none is known."""
        found = {pod["metadata"]["name"]: pod for pod in (await self._cache()).by(_OWNER, owner["metadata"]["uid"])}
        living = {name: pod for name, pod in found.items() if not pod["metadata"].get("deletionTimestamp")}
        if known is None:
            return _read(living.values(), daemon)
        kept = {node: tuple(pod for pod in here if not pod.name or pod.name in living) for node, here in known.items()}
        return {node: here for node, here in kept.items() if here}

    async def write(self, owner: Object, daemon: Daemon, pods: Pods, now: float) -> Pods:
        """Create, change and delete objects until they are `pods`, which are returned with their names."""
        cache = await self._cache()
        namespace = owner["metadata"]["namespace"]
        named = {node: tuple(pod if pod.name else _named(owner, pod) for pod in here) for node, here in pods.items()}
        wanted = {pod.name: pod for here in named.values() for pod in here}
        found = {pod["metadata"]["name"]: pod for pod in cache.by(_OWNER, owner["metadata"]["uid"])}
        for name in found.keys() - wanted.keys():
            with suppress(NotFound):
                await self._client.delete(PODS, name, namespace, grace=0)
        for name, pod in sorted(wanted.items()):
            present = found.get(name)
            if present is None:
                present = await self._create(owner, pod, namespace)
            await self._report(cache, present, pod, now, ready=daemon.ready(pod, now))
        return named

    async def _create(self, owner: Object, pod: Pod, namespace: str) -> Object:
        try:
            return await self._client.create(PODS, pod_object(owner, pod), namespace=namespace)
        except AlreadyExists:
            return await self._client.get(PODS, pod.name, namespace)

    async def _report(self, cache: Cache, found: Object, pod: Pod, now: float, *, ready: bool) -> None:
        if _reported(found.get("status") or {}) == (ready, pod.restarts):
            return
        containers = [one["name"] for one in found["spec"]["containers"]]
        status = pod_status(pod, containers, ready=ready, now=now)
        namespace = found["metadata"]["namespace"]
        with suppress(NotFound):
            cache.learn(await self._client.patch(PODS, pod.name, {"status": status}, namespace, subresource="status"))

    async def _cache(self) -> Cache:
        if self._caches is None:
            self._caches = Caches(self._client, clock=self._clock)
            cache = self._caches.get(PODS, transform=without_managed_fields)
            cache.add_index(_OWNER, by_owner_uid)
            cache.subscribe(self._take)
            self._caches.start()
        await self._caches.synced()
        return self._caches.get(PODS, transform=without_managed_fields)

    def _take(self, change: Change) -> None:
        for key in _owners(change.current):
            self._changed(key)


def pod_object(owner: Object, pod: Pod) -> Object:
    """The object of a new pod of a DaemonSet."""
    template, metadata = owner["spec"]["template"], owner["metadata"]
    given = template.get("metadata") or {}
    generation = (metadata.get("annotations") or {}).get("deprecated.daemonset.template.generation")
    labels = {**(given.get("labels") or {}), REVISION: pod.revision}
    if generation:
        labels["pod-template-generation"] = generation
    return {
        "metadata": {
            "name": pod.name,
            "labels": labels,
            "annotations": dict(given.get("annotations") or {}),
            "ownerReferences": [
                {
                    "apiVersion": _DAEMON_SETS.api_version,
                    "kind": _DAEMON_SETS.kind,
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {**template["spec"], "nodeName": pod.node, "tolerations": tolerations(template["spec"])},
    }


def pod_status(pod: Pod, containers: list[str], *, ready: bool, now: float) -> Object:
    """The status of a pod whose containers run."""
    stamp, started = format_time(now), format_time(pod.created)
    state = {"Ready": ready, "ContainersReady": ready, "Initialized": True, "PodScheduled": True}
    address = _address(pod)
    return {
        "phase": "Running",
        "startTime": started,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "hostIP": address,
        "conditions": [
            {"type": name, "status": str(holds), "lastProbeTime": None, "lastTransitionTime": stamp}
            for name, holds in state.items()
        ],
        "containerStatuses": [
            {
                "name": name,
                "ready": ready,
                "started": ready,
                "restartCount": pod.restarts,
                "image": "",
                "imageID": "",
                "state": {"running": {"startedAt": started}},
            }
            for name in containers
        ],
    }


def _read(found: Iterable[Object], daemon: Daemon) -> Pods:
    pods: Pods = {}
    for obj in sorted(found, key=lambda one: str(one["metadata"]["creationTimestamp"])):
        metadata, node = obj["metadata"], (obj.get("spec") or {}).get("nodeName") or ""
        created = parse_time(metadata["creationTimestamp"])
        ready, restarts = _reported(obj.get("status") or {}) or (False, 0)
        revision = (metadata.get("labels") or {}).get(REVISION) or ""
        works = daemon.template_works or revision != daemon.revision
        ready_at = 0.0 if ready else created if works else math.inf
        pod = Pod(node, revision, created, ready_at, math.inf, restarts, metadata["name"])
        pods[node] = (*pods.get(node, ()), pod)
    return pods


def _reported(status: Object) -> tuple[bool, int] | None:
    """Readiness and restarts by a pod's status; None before it runs."""
    if status.get("phase") != "Running":
        return None
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())
    return ready, sum(one.get("restartCount") or 0 for one in (status.get("containerStatuses") or ())[:1])


def _named(owner: Object, pod: Pod) -> Pod:
    digest = hashlib.sha256(f"{owner['metadata']['uid']}/{pod.node}/{pod.created}/{pod.revision}".encode()).hexdigest()
    return pod._replace(name=f"{owner['metadata']['name']}-{digest[:5]}")


def _address(pod: Pod) -> str:
    """An address of 10.0.0.0/8 that follows from the node's name."""
    number = int(hashlib.sha256(pod.node.encode()).hexdigest()[:6], 16)
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
