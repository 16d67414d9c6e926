"""The simulated gardenlet: works on shoots that have a seed, one operation at a time, as `operations` decides.

It owns: a Shoot's status, the finalizer `gardener`, and the workload cluster behind it. It watches Shoots.
It never: schedules, touches a shoot in state Failed without a new generation, or keeps a worker while an operation
"runs": time passes in the queue. A run that a restart interrupted begins again at 0, as in the real one.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from random import Random
from typing import Any, Final, NamedTuple

import structlog

from hortus.engine import Cache, Result, remove_finalizer
from hortus.gardener.machineimages import AmbiguousImage, ImageNotFound
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey
from hortus.simulation.faults import Faults
from hortus.simulation.garden import operations, rotation
from hortus.simulation.garden.health import after_operation
from hortus.simulation.garden.kinds import SHOOTS, technical_id
from hortus.simulation.garden.operations import DELETE, MIGRATE, OPERATION_ANNOTATION
from hortus.simulation.garden.seeds import gardenlet_ready, healthy
from hortus.simulation.garden.workload import WorkloadClusters
from hortus.simulation.settings import Fault, GardenSettings

FINALIZER = "gardener"
FIELD_MANAGER = "gardenlet"
_CONFIGURATION: Final = "ERR_CONFIGURATION_PROBLEM"
SEED_RETRY: Final = 15.0
"""Seconds of the garden's time until an operation is tried again whose seed was not ready."""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class _Run(NamedTuple):
    kind: str
    uid: str
    since: float
    """Monotonic seconds."""
    length: float
    """Seconds it takes as a whole, unless something goes wrong."""
    fault: Fault | None
    reported: float
    """When progress was last reported, in monotonic seconds."""


class ShootGardenlet:
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
        seeds: Cache | None = None,
    ) -> None:
        """`server_url` is the base URL under which workload clusters are reached. Without `seeds` all are well."""
        self._client = client
        self._shoots = shoots
        self._workload = workload
        self._server_url = server_url.rstrip("/")
        self._faults = faults
        self._settings = settings
        self._clock = clock
        self._seeds = seeds
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
        seed = self._seed(shoot)
        if seed is not None and not gardenlet_ready(seed):
            self._runs.pop(key, None)  # what runs there is nobody's, and starts again
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
        seed = self._seed(shoot)
        if seed is not None and not healthy(seed):
            return await self._refuse(shoot, operation.kind, now)
        words = _words(shoot)
        shoot = await self._hold(shoot)
        identity = self._identity(shoot)
        status = operations.started(shoot, operation.kind, now, identity)
        await self._write(shoot, {**status, **rotation.begun(shoot, words, now)})
        self._runs[key] = self._run(key, shoot, operation.kind)
        _log.info("operation started", shoot=str(key), operation=operation.kind, why=operation.why)
        return Result(requeue_after=self._step(self._runs[key].length))

    def _run(self, key: ObjectKey, shoot: Object, kind: str) -> _Run:
        provider, forced = shoot["spec"]["provider"]["type"], kind == DELETE and operations.is_forced(shoot)
        fault = None if forced else self._faults.operation(key.name, kind, provider)
        length = operations.duration(kind, self._settings, provider)
        if self._settings.jitter:
            word = f"{self._settings.random_seed}/{key}/{kind}/{shoot['metadata'].get('generation')}"
            length *= 1 + self._settings.jitter * Random(word).uniform(-1, 1)  # noqa: S311 - to be repeated
        if fault is not None and fault.effect == "slow":
            length += self._settings.scaled(fault.seconds)
        now = self._clock.monotonic()
        return _Run(kind, shoot["metadata"]["uid"], now, length, fault, now)

    async def _refuse(self, shoot: Object, kind: str, now: float) -> Result:
        status = operations.seed_unready(kind, shoot["spec"]["seedName"], now)
        last = operations.last_operation(shoot)
        if last is None or last["description"] != status["lastOperation"]["description"]:
            await self._write(shoot, status)
        return Result(requeue_after=self._settings.scaled(SEED_RETRY))

    async def _advance(self, key: ObjectKey, shoot: Object, run: _Run) -> Result | None:
        passed = self._clock.monotonic() - run.since
        if run.fault is not None and run.fault.effect != "slow" and passed >= run.length * run.fault.at_progress / 100:
            return await self._strike(key, shoot, run, run.fault, passed)
        share = passed / run.length if run.length else 1.0
        if share >= 1.0:
            return await self._finish(key, shoot, run.kind)
        left, step = max(run.length - passed, 0.01), self._step(run.length)
        # Our own writes bring us here, too: a report is due by the clock, not by a change.
        early = run.reported + step - self._clock.monotonic()
        if early > 0.001:
            return Result(requeue_after=min(early, left))
        self._runs[key] = run._replace(reported=self._clock.monotonic())
        await self._report(shoot, run.kind, share)
        return Result(requeue_after=min(step, left))

    async def _strike(self, key: ObjectKey, shoot: Object, run: _Run, fault: Fault, passed: float) -> Result | None:
        """Let an operation fail, be broken off, or stay where it is."""
        if fault.effect == "fail":
            return await self._fail(key, shoot, run.kind, fault)
        if fault.effect == "abort":
            return await self._abort(key, shoot, run.kind, fault)
        if shoot["metadata"].get("generation") != (shoot.get("status") or {}).get("observedGeneration"):
            self._runs.pop(key, None)
            return await self._begin(key, shoot)
        await self._report(shoot, run.kind, fault.at_progress / 100)
        if not fault.seconds:
            return None
        stay = self._settings.scaled(fault.seconds)
        wait = run.length * fault.at_progress / 100 + stay - passed
        if wait > 0:
            return Result(requeue_after=wait)
        self._runs[key] = run = run._replace(since=run.since + stay, fault=None)
        return await self._advance(key, shoot, run)

    async def _report(self, shoot: Object, kind: str, share: float) -> None:
        """Say how far an operation is, when it is further than was said."""
        status = operations.running(kind, share, self._clock.now())
        if status["lastOperation"]["progress"] > _progress(shoot):
            await self._write(shoot, status)

    async def _readdress(self, shoot: Object) -> None:
        """Tell at once where the cluster is now, when the server has come back on another port."""
        status = shoot.get("status") or {}
        addresses = self._identity(shoot)["advertisedAddresses"]
        if status.get("technicalID") and status.get("advertisedAddresses") != addresses:
            await self._write(shoot, {"advertisedAddresses": addresses})

    async def _finish(self, key: ObjectKey, shoot: Object, kind: str) -> Result | None:
        now = self._clock.now()
        cluster = technical_id(shoot["metadata"]["namespace"], shoot["metadata"]["name"])
        if kind == DELETE:
            await self._workload.remove(cluster)
            await self._write(shoot, operations.succeeded(shoot, kind, now))
            self._runs.pop(key, None)
            await self._release(shoot)
        elif kind == MIGRATE:
            # The workload cluster goes on: its nodes do not move.
            await self._write(shoot, operations.succeeded(shoot, kind, now))
            self._runs.pop(key, None)
        else:
            try:
                has_nodes = await self._workload.ensure(cluster, shoot)
            except (ImageNotFound, AmbiguousImage) as error:
                return await self._fail(key, shoot, kind, Fault(code=_CONFIGURATION, message=str(error)))
            if not has_nodes:
                return await self._await_nodes(shoot, kind, now)
            done = {**operations.succeeded(shoot, kind, now), **after_operation(shoot, now)}
            await self._write(shoot, {**done, **rotation.succeeded(shoot, now)})
            self._runs.pop(key, None)
        _log.info("operation succeeded", shoot=str(key), operation=kind)
        return None

    async def _await_nodes(self, shoot: Object, kind: str, now: float) -> Result:
        status = operations.waiting_for_nodes(shoot, kind, now)
        before = operations.last_operation(shoot) or {}
        if before.get("description") != status["lastOperation"]["description"]:
            await self._write(shoot, status)
        return Result(requeue_after=max(self._settings.scaled(self._settings.node_duration), 0.01))

    async def _abort(self, key: ObjectKey, shoot: Object, kind: str, fault: Fault) -> Result:
        await self._write(shoot, operations.aborted(kind, fault.at_progress, self._clock.now()))
        self._runs.pop(key, None)
        _log.info("operation aborted", shoot=str(key), operation=kind)
        return Result(requeue_after=self._settings.scaled(self._settings.retry_period))

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
        asked = _words(shoot)
        kept = [word for word in asked if not word.startswith(rotation.PREFIX)]
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

    def _step(self, length: float) -> float:
        return max(min(self._settings.scaled(self._settings.progress_period), length), 0.01)

    def _seed(self, shoot: Object) -> Object | None:
        """The seed whose gardenlet works on a shoot, None where none is known, which is taken for one that is well."""
        name = operations.home(shoot)
        return self._seeds.get(ObjectKey("", name)) if self._seeds is not None and name else None

    def shoots_of_seed(self, seed: Object) -> list[ObjectKey]:
        """The shoots that a change of a seed concerns."""
        return list(self._shoots.keys_by("seed", seed["metadata"]["name"]))

    def _identity(self, shoot: Object) -> dict[str, Any]:
        """technicalID, uid, cluster identity and addresses: set once, early, and kept."""
        metadata, status = shoot["metadata"], shoot.get("status") or {}
        cluster = technical_id(metadata["namespace"], metadata["name"])
        uid = status.get("uid") or str(uuid.uuid4())
        url = f"{self._server_url}/clusters/{cluster}"
        return {
            "technicalID": cluster,
            "uid": uid,
            "clusterIdentity": status.get("clusterIdentity") or f"{cluster}-{uid}-simulated",
            "advertisedAddresses": [
                {"name": "external", "url": url},
                {"name": "internal", "url": url},
                {"name": "service-account-issuer", "url": url},
            ],
        }


def _words(shoot: Object) -> list[str]:
    """The operations that the annotation asks for."""
    asked = (shoot["metadata"].get("annotations") or {}).get(OPERATION_ANNOTATION, "")
    return [word.strip() for word in asked.split(";") if word.strip()]


def _progress(shoot: Object) -> int:
    return int(((shoot.get("status") or {}).get("lastOperation") or {}).get("progress", 0))
