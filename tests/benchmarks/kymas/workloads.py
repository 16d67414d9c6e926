"""The workloads of all clusters, played by one task: a Deployment whose Manifest waits for it becomes available.

The simulated workloads of `hortus up` watch each cluster three times, which would cost more than what is measured. One
watch of the Manifests shows which Deployment is waited for; its status is written as administrator of all clusters. The
same watch records when a Manifest got its version and when it was Ready with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

import orjson
from tests.benchmarks.kymas.catalog import CONTROL, SYSTEM, deployment_of

from hortus.domains.modules.types import MANIFESTS
from hortus.kube import Client
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, format_time

_KYMA, _MODULE, _CHANNEL = (f"operator.kyma-project.io/{name}" for name in ("kyma-name", "module-name", "channel"))
_WAITS = "waiting for resources to become ready"
_AT_ONCE = 32


class Seen(NamedTuple):
    """The last state of a Manifest."""

    version: str
    channel: str
    generation: int
    ready: bool
    """Ready, with the layer that it asks for."""


class PlayedWorkloads:
    """Follows all Manifests. `client` is administrator of the management cluster and of all others."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._played: set[tuple[str, str, str]] = set()
        self.manifests: dict[tuple[str, str], Seen] = {}
        """By Kyma and module."""
        self.versions: dict[tuple[str, str, str], float] = {}
        """When a Manifest got a version, by Kyma, module and version; seconds of the monotonic clock."""
        self.installed: dict[tuple[str, str, str], float] = {}
        """When it was Ready with it."""
        self.channels: dict[tuple[str, str, str], float] = {}
        """When it got a channel."""
        self.generations: dict[tuple[str, str], tuple[int, float]] = {}
        """The generation of a Manifest, and when it got it."""
        self.writes = 0
        """Events of Manifests: writes to them."""
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def until(self, count: int, *, module: str = "", version: str = "", ready: bool = True) -> None:
        """Return when so many Manifests, of a module and version if they are named, are Ready."""
        while True:
            self._changed.clear()
            found = sum(
                1
                for (_, name), one in self.manifests.items()
                if one.ready >= ready and name == (module or name) and one.version == (version or one.version)
            )
            if found >= count:
                return
            await self._changed.wait()
            # One count for the many events of half a second, so that counting does not take the CPU that is measured.
            await asyncio.sleep(0.5)

    async def _run(self) -> None:
        async with contextlib.aclosing(self._client.watch(MANIFESTS, CONTROL, initial_events=True)) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    self._see(event.object)

    def _see(self, manifest: Object) -> None:
        now = time.monotonic()
        metadata, spec, status = manifest["metadata"], manifest["spec"], manifest.get("status") or {}
        kyma, module = metadata["labels"][_KYMA], metadata["labels"][_MODULE]
        version, channel = spec["version"], metadata["labels"].get(_CHANNEL, "")
        layer = (metadata.get("annotations") or {}).get("sync-oci-ref")
        if self.generations.get((kyma, module), (0, 0.0))[0] != metadata["generation"]:
            self.generations[kyma, module] = metadata["generation"], now
        ready = status.get("state") == "Ready" and layer == spec["install"]["source"]["ref"]
        self.writes += 1
        self.versions.setdefault((kyma, module, version), now)
        self.channels.setdefault((kyma, module, channel), now)
        if ready:
            self.installed.setdefault((kyma, module, version), now)
        elif (status.get("lastOperation") or {}).get("operation") == _WAITS:
            self._play(kyma, module, version)
        self.manifests[kyma, module] = Seen(version, channel, metadata["generation"], ready)
        self._changed.set()

    def _play(self, kyma: str, module: str, version: str) -> None:
        if (kyma, module, version) in self._played:
            return
        self._played.add((kyma, module, version))
        task = asyncio.create_task(self._run_workload(kyma, deployment_of(module), len(self._played)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_workload(self, kyma: str, name: str, number: int) -> None:
        path = f"{cluster_path(kyma)}/apis/apps/v1/namespaces/{SYSTEM}/deployments/{name}"
        async with self._places:
            try:
                generation = orjson.loads((await self._client.request("GET", path)).body)["metadata"]["generation"]
                body = orjson.dumps({"status": _status(generation)})
                await self._client.request("PATCH", f"{path}/status", body, content_type="application/merge-patch+json")
            except KubeError as error:
                print(f"the workload of {path} was not played: {error}", flush=True)


def cluster_path(kyma: str) -> str:
    """The path of a Kyma's cluster on the API server."""
    return f"/clusters/shoot--demo--{kyma}"


def _status(generation: int) -> Object:
    now = format_time(time.time())
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "lastUpdateTime": now, "lastTransitionTime": now}
        for kind, reason in (("Available", "MinimumReplicasAvailable"), ("Progressing", "NewReplicaSetAvailable"))
    ]
    replicas = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    return {"observedGeneration": generation, **replicas, "conditions": conditions}
