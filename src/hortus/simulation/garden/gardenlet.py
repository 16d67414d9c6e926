"""The simulated gardenlet: works on shoots that have a seed, one operation at a time, as `operations` decides.

It owns: a Shoot's status, the finalizer `gardener`, and the workload cluster behind it. It watches Shoots.
It never: schedules, touches a shoot in state Failed without a new generation, or keeps a worker while an operation
"runs": time passes in the queue. A run that a restart interrupted begins again at 0, as in the real one.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

import structlog

from hortus.engine import Cache, Result, remove_finalizer
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey
from hortus.simulation.faults import Faults
from hortus.simulation.garden import operations
from hortus.simulation.garden.health import after_operation
from hortus.simulation.garden.kinds import SHOOTS
from hortus.simulation.garden.operations import DELETE, OPERATION_ANNOTATION
from hortus.simulation.garden.workload import WorkloadClusters
from hortus.simulation.settings import Fault, GardenSettings

FINALIZER = "gardener"
FIELD_MANAGER = "gardenlet"
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class _Run(NamedTuple):
    kind: str
    uid: str
    since: float
    """Monotonic seconds."""
    fault: Fault | None


class Gardenlet:
    def __init__(
        self,
        *,
        client: Client,
        shoots: Cache,
        workload: WorkloadClusters,
        server_url: str,
        faults: Faults,
        settings: GardenSettings,
        clock: Clock,
    ) -> None:
        """`server_url` is the base URL under which workload clusters are reached."""
        self._client = client
        self._shoots = shoots
        self._workload = workload
        self._server_url = server_url.rstrip("/")
        self._faults = faults
        self._settings = settings
        self._clock = clock
        self._runs: dict[ObjectKey, _Run] = {}

    async def reconcile(self, key: ObjectKey) -> Result | None:
        try:
            return await self._work(key)
        except NotFound:
            # It went while the cache still showed it.
            self._runs.pop(key, None)
            return None

    async def _work(self, key: ObjectKey) -> Result | None:
        shoot = self._shoots.get(key)
        if shoot is None:
            self._runs.pop(key, None)
            return None
        run = self._runs.get(key)
        if run is not None and run.uid == shoot["metadata"]["uid"]:
            return await self._advance(key, shoot, run)
        if shoot["metadata"].get("deletionTimestamp") and not (shoot.get("status") or {}).get("uid"):
            await self._release(shoot)
            return None
        return await self._begin(key, shoot)

    async def _begin(self, key: ObjectKey, shoot: Object) -> Result | None:
        now = self._clock.now()
        operation = operations.due_operation(shoot, now, self._settings)
        if operation is None:
            await self._readdress(shoot)
            return Result(requeue_after=operations.next_look(shoot, now, self._settings))
        shoot = await self._hold(shoot)
        identity = self._identity(shoot)
        await self._write(shoot, operations.started(shoot, operation.kind, now, identity))
        fault = self._faults.operation(key.name, operation.kind)
        uid = shoot["metadata"]["uid"]
        self._runs[key] = _Run(operation.kind, uid, self._clock.monotonic(), fault)
        _log.info("operation started", shoot=str(key), operation=operation.kind, why=operation.why)
        return Result(requeue_after=self._step(operation.kind))

    async def _advance(self, key: ObjectKey, shoot: Object, run: _Run) -> Result | None:
        length = operations.duration(run.kind, self._settings)
        share = (self._clock.monotonic() - run.since) / length if length else 1.0
        if run.fault is not None and share * 100 >= run.fault.at_progress:
            return await self._fail(key, shoot, run.kind, run.fault)
        if share >= 1.0:
            await self._finish(key, shoot, run.kind)
            return None
        status = operations.running(run.kind, share, self._clock.now())
        if status["lastOperation"]["progress"] > _progress(shoot):
            await self._write(shoot, status)
        return Result(requeue_after=min(self._step(run.kind), max(length * (1.0 - share), 0.01)))

    async def _readdress(self, shoot: Object) -> None:
        """Tell at once where the cluster is now, when the server has come back on another port."""
        status = shoot.get("status") or {}
        addresses = self._identity(shoot)["advertisedAddresses"]
        if status.get("technicalID") and status.get("advertisedAddresses") != addresses:
            await self._write(shoot, {"advertisedAddresses": addresses})

    async def _finish(self, key: ObjectKey, shoot: Object, kind: str) -> None:
        now = self._clock.now()
        technical_id = shoot["status"]["technicalID"]
        if kind == DELETE:
            await self._workload.remove(technical_id)
            await self._write(shoot, operations.succeeded(shoot, kind, now))
            self._runs.pop(key, None)
            await self._release(shoot)
        else:
            await self._workload.ensure(technical_id, shoot)
            await self._write(shoot, {**operations.succeeded(shoot, kind, now), **after_operation(shoot, now)})
            self._runs.pop(key, None)
        _log.info("operation succeeded", shoot=str(key), operation=kind)

    async def _fail(self, key: ObjectKey, shoot: Object, kind: str, fault: Fault) -> Result | None:
        now = self._clock.now()
        codes = [fault.code] if fault.code else []
        await self._write(
            shoot, operations.failed(shoot, kind, fault.at_progress, fault.message, codes, now, self._settings)
        )
        self._runs.pop(key, None)
        _log.info("operation failed", shoot=str(key), operation=kind, codes=codes)
        return Result(requeue_after=self._settings.scaled(self._settings.retry_period))

    async def _hold(self, shoot: Object) -> Object:
        """Add the finalizer and take off rotation annotations, which gardenlet itself consumes."""
        metadata = shoot["metadata"]
        patch: dict[str, Any] = {}
        if FINALIZER not in (metadata.get("finalizers") or ()) and not metadata.get("deletionTimestamp"):
            patch["finalizers"] = [*(metadata.get("finalizers") or ()), FINALIZER]
        asked = (metadata.get("annotations") or {}).get(OPERATION_ANNOTATION, "").split(";")
        kept = [word for word in asked if not word.strip().startswith("rotate-")]
        if kept != asked:
            patch["annotations"] = {OPERATION_ANNOTATION: ";".join(kept) or None}
        if not patch:
            return shoot
        if "finalizers" in patch:
            # The list is replaced whole: only if nobody changed the object since we looked.
            patch["resourceVersion"] = metadata["resourceVersion"]
        return await self._patch(shoot, {"metadata": patch})

    async def _release(self, shoot: Object) -> None:
        """Take the finalizer off, so that the shoot can go."""
        await remove_finalizer(self._client, SHOOTS, shoot, FINALIZER)

    async def _write(self, shoot: Object, status: Mapping[str, Any]) -> None:
        await self._patch(shoot, {"status": dict(status)}, subresource="status")

    async def _patch(self, shoot: Object, patch: Object, *, subresource: str = "") -> Object:
        metadata = shoot["metadata"]
        updated = await self._client.patch(
            SHOOTS,
            metadata["name"],
            patch,
            metadata["namespace"],
            subresource=subresource,
            field_manager=FIELD_MANAGER,
        )
        self._shoots.learn(updated)
        return updated

    def _step(self, kind: str) -> float:
        period = self._settings.scaled(self._settings.progress_period)
        return max(min(period, operations.duration(kind, self._settings)), 0.01)

    def _identity(self, shoot: Object) -> dict[str, Any]:
        """technicalID, uid, cluster identity and addresses: set once, early, and kept."""
        metadata, status = shoot["metadata"], shoot.get("status") or {}
        project = metadata["namespace"].removeprefix("garden-")
        technical_id = status.get("technicalID") or f"shoot--{project}--{metadata['name']}"
        uid = status.get("uid") or str(uuid.uuid4())
        url = f"{self._server_url}/clusters/{technical_id}"
        return {
            "technicalID": technical_id,
            "uid": uid,
            "clusterIdentity": f"{technical_id}-{uid}-simulated",
            "advertisedAddresses": [
                {"name": "external", "url": url},
                {"name": "internal", "url": url},
                {"name": "service-account-issuer", "url": url},
            ],
        }


def _progress(shoot: Object) -> int:
    return int(((shoot.get("status") or {}).get("lastOperation") or {}).get("progress", 0))
