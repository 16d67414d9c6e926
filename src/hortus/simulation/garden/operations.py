"""The progress of a shoot's lastOperation: pure decisions, from a Shoot and the time to its next status.

Contract: gardener, docs/usage/shoot/shoot_status.md. `gardenlet.py` carries them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hortus.gardener.livemigration import LIVE_MIGRATE, RECORD
from hortus.kube.numbers import boolean
from hortus.kube.objects import Object, format_time, parse_time
from hortus.simulation.settings import ERROR_CODES, GardenSettings

FORCE_DELETION = "confirmation.gardener.cloud/force-deletion"
CREATE, RECONCILE, DELETE, MIGRATE, RESTORE = "Create", "Reconcile", "Delete", "Migrate", "Restore"
PROCESSING, SUCCEEDED, ERROR, FAILED, PENDING, ABORTED = (
    "Processing",
    "Succeeded",
    "Error",
    "Failed",
    "Pending",
    "Aborted",
)

GARDENLET_VERSION = "v1.120.0"
OPERATION_ANNOTATION = "gardener.cloud/operation"
NON_RETRYABLE_CODES = frozenset(
    {
        "ERR_INFRA_UNAUTHENTICATED",
        "ERR_INFRA_UNAUTHORIZED",
        "ERR_INFRA_QUOTA_EXCEEDED",
        "ERR_INFRA_DEPENDENCIES",
        "ERR_CONFIGURATION_PROBLEM",
        "ERR_PROBLEMATIC_WEBHOOK",
    }
)

_FLOW_NAMES = {
    CREATE: "Shoot cluster reconciliation",
    RECONCILE: "Shoot cluster reconciliation",
    DELETE: "Shoot cluster deletion",
    MIGRATE: "Shoot cluster preparation for migration",
    RESTORE: "Shoot cluster restoration",
}
_FORCED_FLOW = "Shoot cluster force deletion"
_RECONCILE_TASKS = (
    "Ensure shoot cluster identity",
    "Deploying Kubernetes API server service in the Seed cluster",
    "Waiting until Kubernetes API server service is reported",
    "Deploying internal domain DNS record",
    "Deploying external domain DNS record",
    "Deploying main and events etcd",
    "Waiting until main and event etcd report readiness",
    "Deploying Kubernetes API server",
    "Waiting until Kubernetes API server rolled out",
    "Deploying gardener-resource-manager",
    "Deploying Kubernetes scheduler",
    "Deploying Kubernetes controller manager",
    "Deploying Shoot infrastructure",
    "Waiting until shoot infrastructure has been reconciled",
    "Deploying shoot control plane components",
    "Deploying network plugin",
    "Deploying operating system configs for workers",
    "Configuring shoot worker pools",
    "Waiting until shoot worker nodes have been reconciled",
    "Deploying monitoring",
)
_DELETE_TASKS = (
    "Initializing connection to the Shoot",
    "Cleaning extended API groups",
    "Cleaning Kubernetes resources",
    "Waiting until shoot worker nodes have been terminated",
    "Destroying shoot control plane",
    "Destroying shoot infrastructure",
    "Waiting until shoot infrastructure has been destroyed",
    "Destroying external domain DNS record",
    "Destroying main and events etcd",
    "Deleting shoot namespace in Seed",
)
_MIGRATE_TASKS = (
    "Initializing connection to the Shoot",
    "Stopping Kubernetes controller manager",
    "Storing the state of extensions",
    "Migrating extension resources",
    "Waiting until extension resources have been migrated",
    "Deleting Kubernetes API server",
    "Creating backup of main etcd",
    "Destroying main and events etcd",
    "Deleting shoot namespace in Seed",
)


class ShootOperation(NamedTuple):
    kind: str
    """Create, Reconcile, Delete, Migrate or Restore."""
    why: str


def last_operation(shoot: Object) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (shoot.get("status") or {}).get("lastOperation")
    return found


def operation_kind(shoot: Object) -> str:
    """The operation that a shoot needs, were it to be worked on now."""
    last = last_operation(shoot)
    if shoot["metadata"].get("deletionTimestamp"):
        return DELETE
    if moves(shoot):
        return MIGRATE
    if last is None or (last["type"] == CREATE and last["state"] != SUCCEEDED):
        return CREATE
    if last["type"] == MIGRATE:
        return RESTORE if last["state"] in (SUCCEEDED, ABORTED) else MIGRATE
    if last["type"] == RESTORE and last["state"] != SUCCEEDED:
        return RESTORE
    return RECONCILE


def moves(shoot: Object) -> bool:
    """Reports whether a shoot is to have another seed than it has."""
    wanted, present = shoot["spec"].get("seedName"), (shoot.get("status") or {}).get("seedName")
    return bool(wanted and present and wanted != present)


def moves_live(shoot: Object) -> bool:
    """Reports whether the coordinator of live migrations has a shoot, which gardenlet leaves alone meanwhile."""
    annotations = shoot["metadata"].get("annotations") or {}
    return RECORD in annotations or (boolean(annotations.get(LIVE_MIGRATE, "")) is True and moves(shoot))


def home(shoot: Object) -> str:
    """The seed that has the control plane of a shoot; while that is prepared for a move, the one it moves from."""
    return str((shoot.get("status") or {}).get("seedName") or shoot["spec"].get("seedName") or "")


def due_operation(shoot: Object, now: float, settings: GardenSettings) -> ShootOperation | None:
    """The operation to start now, None while the shoot is to be left alone."""
    if moves_live(shoot):
        return None
    status = shoot.get("status") or {}
    last = last_operation(shoot)
    kind = operation_kind(shoot)
    if not shoot["spec"].get("seedName"):
        return ShootOperation(DELETE, "never scheduled") if kind == DELETE else None
    changed = shoot["metadata"].get("generation") != status.get("observedGeneration")
    if last is None or changed or (kind in (DELETE, MIGRATE, RESTORE) and last["type"] != kind):
        return ShootOperation(kind, "new generation" if last else "new")
    if last["state"] in (PROCESSING, PENDING, ABORTED):
        return ShootOperation(kind, "interrupted")
    if last["state"] == ERROR and now >= _time(last) + settings.scaled(settings.retry_period):
        return ShootOperation(kind, "retry")
    if last["state"] == SUCCEEDED and now >= _time(last) + settings.scaled(settings.sync_period):
        return ShootOperation(kind, "regular")
    return None


def next_look(shoot: Object, now: float, settings: GardenSettings) -> float | None:
    """Seconds until `due_operation` may answer otherwise without a change of the object; None: never."""
    last = last_operation(shoot)
    if last is None or not shoot["spec"].get("seedName"):
        return None
    wait = {ERROR: settings.retry_period, SUCCEEDED: settings.sync_period}.get(last["state"])
    return None if wait is None else max(_time(last) + settings.scaled(wait) - now, 0.05)


def duration(kind: str, settings: GardenSettings, provider: str = "") -> float:
    """Seconds of our time that an operation takes, before jitter."""
    default = {CREATE: settings.create_duration, DELETE: settings.delete_duration}.get(
        kind, settings.reconcile_duration
    )
    fitting = (
        pace.seconds for pace in settings.paces if pace.provider in ("", provider) and pace.operation in ("", kind)
    )
    return settings.scaled(next(fitting, default))


def is_forced(shoot: Object) -> bool:
    """True when a deletion leaves the infrastructure and the content of the cluster as they are."""
    return FORCE_DELETION in (shoot["metadata"].get("annotations") or {})


def progress(kind: str, share: float, *, forced: bool = False) -> tuple[int, str]:
    """Percent and description when `share` (0 to 1) of an operation is done: whole tasks count, as in gardenlet."""
    tasks = _tasks(kind)
    flow = _FORCED_FLOW if forced else _FLOW_NAMES[kind]
    done = min(int(share * len(tasks)), len(tasks))
    if done == 0:
        return 0, f"Starting {flow}"
    if done == len(tasks):
        return 100, f"{flow} finished"
    return 100 * done // len(tasks), ", ".join(tasks[done : done + 2])


def task_at(kind: str, percent: int) -> str:
    """The task that is at work when so much is done."""
    tasks = _tasks(kind)
    return tasks[min(percent * len(tasks) // 100, len(tasks) - 1)]


def _tasks(kind: str) -> Sequence[str]:
    return {DELETE: _DELETE_TASKS, MIGRATE: _MIGRATE_TASKS}.get(kind, _RECONCILE_TASKS)


def waiting_for_nodes(shoot: Object, kind: str, now: float) -> dict[str, Any]:
    """The part of status while nodes are being replaced, which may last longer than all the rest."""
    index = _RECONCILE_TASKS.index("Waiting until shoot worker nodes have been reconciled")
    percent = max(100 * index // len(_RECONCILE_TASKS), (last_operation(shoot) or {}).get("progress", 0))
    return {"lastOperation": _operation(kind, PROCESSING, percent, _RECONCILE_TASKS[index], now)}


def aborted(kind: str, percent: int, now: float) -> dict[str, Any]:
    """The part of status of an operation that was broken off; it starts again."""
    return {"lastOperation": _operation(kind, ABORTED, percent, "Operation was aborted", now)}


def seed_unready(kind: str, seed: str, now: float) -> dict[str, Any]:
    """The part of status of an operation that cannot begin on its seed; never Failed, it is tried again."""
    text = f'Seed "{seed}" is not ready: its conditions say so. Operation will be retried.'
    return {"lastOperation": _operation(kind, ERROR, 0, text, now)}


def started(shoot: Object, kind: str, now: float, identity: Mapping[str, str]) -> dict[str, Any]:
    """The part of status that the start of an operation writes."""
    status = shoot.get("status") or {}
    last = last_operation(shoot)
    generation = shoot["metadata"].get("generation", 1)
    fresh = (
        not status.get("retryCycleStartTime")
        or generation != status.get("observedGeneration")
        or (kind == DELETE and last is not None and last["type"] != DELETE)
    )
    patch: dict[str, Any] = {
        "lastOperation": _operation(kind, PROCESSING, *progress(kind, 0.0, forced=is_forced(shoot)), now),
        "observedGeneration": generation,
        "gardener": {"id": "simulated", "name": "hortus-simulated-gardenlet", "version": GARDENLET_VERSION},
        **identity,
    }
    if fresh:
        patch["retryCycleStartTime"] = format_time(now)
    if kind not in (DELETE, MIGRATE):
        patch["seedName"] = shoot["spec"]["seedName"]
    return patch


def running(kind: str, share: float, now: float) -> dict[str, Any]:
    return {"lastOperation": _operation(kind, PROCESSING, *progress(kind, share), now)}


def succeeded(shoot: Object, kind: str, now: float) -> dict[str, Any]:
    """The part of status that success writes; None removes a field, as in a merge patch."""
    patch: dict[str, Any] = {
        "lastOperation": _operation(kind, SUCCEEDED, *progress(kind, 1.0, forced=is_forced(shoot)), now),
        "retryCycleStartTime": None,
        "lastErrors": None,
    }
    if kind != DELETE:
        patch["seedName"] = shoot["spec"]["seedName"]
        patch["hibernated"] = bool((shoot["spec"].get("hibernation") or {}).get("enabled"))
    return patch


def failed(
    shoot: Object, kind: str, percent: int, message: str, codes: Sequence[str], now: float, settings: GardenSettings
) -> dict[str, Any]:
    """The part of status that a failure writes: Error, or Failed when no retry can help or all were tried."""
    began = (shoot.get("status") or {}).get("retryCycleStartTime")
    spent = now - parse_time(began) if began else 0.0
    final = bool(NON_RETRYABLE_CODES & set(codes)) or spent > settings.scaled(settings.retry_duration)
    state = FAILED if final else ERROR
    message = message or ERROR_CODES.get(next(iter(codes), ""), "the infrastructure refused")
    text = message if final else f"{message} Operation will be retried."
    error = {
        "description": message,
        "taskID": task_at(kind, percent),
        "codes": list(codes),
        "lastUpdateTime": format_time(now),
    }
    patch: dict[str, Any] = {
        "lastOperation": _operation(kind, state, percent, text, now),
        "lastErrors": [error],
    }
    if final:
        patch["retryCycleStartTime"] = None
    return patch


def unscheduled(now: float, why: str) -> dict[str, Any]:
    """The part of status that the scheduler writes when it finds no seed."""
    return {"lastOperation": _operation(CREATE, PENDING, 0, f"Failed to schedule Shoot: {why}", now)}


def _operation(kind: str, state: str, percent: int, description: str, now: float) -> dict[str, Any]:
    return {
        "type": kind,
        "state": state,
        "progress": percent,
        "description": description,
        "lastUpdateTime": format_time(now),
    }


def _time(last: Mapping[str, Any]) -> float:
    return parse_time(last["lastUpdateTime"])
