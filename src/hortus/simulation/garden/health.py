"""A shoot's conditions, constraints and its status label. Contract: gardener, docs/usage/shoot/shoot_status.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hortus.kube.objects import Object, format_time, parse_time
from hortus.simulation.garden.operations import CREATE, DELETE, PROCESSING, SUCCEEDED

STATUS_LABEL = "shoot.gardener.cloud/status"
_ORDER = ("healthy", "progressing", "unknown", "unhealthy")
_OF_STATUS = {"True": "healthy", "Progressing": "progressing", "Unknown": "unknown", "False": "unhealthy"}

_CONDITIONS = (
    (
        "APIServerAvailable",
        "HealthzRequestSucceeded",
        "API server /healthz endpoint responded with success status code.",
    ),
    ("ControlPlaneHealthy", "ControlPlaneRunning", "All control plane components are healthy."),
    ("ObservabilityComponentsHealthy", "ObservabilityComponentsRunning", "All observability components are healthy."),
    ("EveryNodeReady", "EveryNodeReady", "All nodes are ready."),
    ("SystemComponentsHealthy", "SystemComponentsRunning", "All system components are healthy."),
)
_CONSTRAINTS = (
    ("HibernationPossible", "NoProblematicWebhooks", "All webhooks are properly configured."),
    ("MaintenancePreconditionsSatisfied", "NoProblematicWebhooks", "All webhooks are properly configured."),
)


def _workerless(shoot: Object) -> bool:
    return not (shoot["spec"].get("provider") or {}).get("workers")


def _texts(shoot: Object) -> list[tuple[str, str, str]]:
    without_nodes = _workerless(shoot)
    return [text for text in _CONDITIONS if not (without_nodes and text[0] == "EveryNodeReady")]


def after_operation(shoot: Object, now: float) -> dict[str, Any]:
    """Conditions and constraints right after an operation: Progressing until the next care run has looked."""
    return {
        "conditions": [
            _condition(shoot, "conditions", kind, "Progressing", reason, "Waiting for the next health check.", now)
            for kind, reason, _ in _texts(shoot)
        ],
        "constraints": [
            _condition(shoot, "constraints", kind, "Progressing", reason, "Waiting for the next check.", now)
            for kind, reason, _ in _CONSTRAINTS
        ],
    }


def after_care(shoot: Object, unhealthy: Mapping[str, str], now: float, threshold: float) -> dict[str, Any]:
    """Conditions and constraints as a care run leaves them.

    `unhealthy` maps a condition type to what is wrong. True turns to Progressing first, and to False only when it has
    been Progressing for `threshold` seconds.
    """
    conditions = []
    for kind, reason, text in _texts(shoot):
        if kind not in unhealthy:
            conditions.append(_condition(shoot, "conditions", kind, "True", reason, text, now))
            continue
        before = _present(shoot, "conditions", kind) or {}
        since = parse_time(before["lastUpdateTime"]) if before.get("lastUpdateTime") else now
        failing = before.get("status") == "False" or (
            before.get("status") == "Progressing" and now - since >= threshold
        )
        status = "False" if failing else "Progressing"
        conditions.append(_condition(shoot, "conditions", kind, status, f"{kind}Failed", unhealthy[kind], now))
    constraints = [
        _condition(shoot, "constraints", kind, "True", reason, text, now) for kind, reason, text in _CONSTRAINTS
    ]
    return {"conditions": conditions, "constraints": constraints}


def unheard(shoot: Object, now: float) -> dict[str, Any]:
    """Conditions and constraints as they are set when the gardenlet is silent; empty when they are so already."""
    status = shoot.get("status") or {}
    fields = [field for field in ("conditions", "constraints") if status.get(field)]
    if all(found["status"] == "Unknown" for field in fields for found in status[field]):
        return {}
    text = "Gardenlet stopped sending heartbeats."
    return {
        field: [
            _condition(shoot, field, found["type"], "Unknown", "StatusUnknown", text, now) for found in status[field]
        ]
        for field in fields
    }


def status_label(shoot: Object) -> str:
    """healthy, progressing, unknown or unhealthy, from conditions, last operation and last errors."""
    status = shoot.get("status") or {}
    last = status.get("lastOperation")
    without_errors = "unhealthy" if status.get("lastErrors") else "healthy"
    if last is None:
        return "healthy"
    if last["type"] == DELETE or (last["type"] == CREATE and last["state"] != SUCCEEDED):
        return without_errors
    worst = _worst([_OF_STATUS.get(c["status"], "unknown") for c in status.get("conditions") or ()])
    if last["state"] == PROCESSING:
        return _worst([worst, without_errors])
    return _worst([worst, "healthy" if last["state"] == SUCCEEDED else "unhealthy"])


def _worst(found: Sequence[str]) -> str:
    return max(found, key=_ORDER.index, default="healthy")


def _present(shoot: Object, field: str, kind: str) -> Mapping[str, Any] | None:
    return next((c for c in (shoot.get("status") or {}).get(field) or () if c["type"] == kind), None)


def _condition(
    shoot: Object, field: str, kind: str, status: str, reason: str, message: str, now: float
) -> dict[str, Any]:
    before = _present(shoot, field, kind)
    same = before is not None and before.get("status") == status
    updated = before is not None and same and before.get("message") == message
    stamp = format_time(now)
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": before["lastTransitionTime"] if same and before else stamp,
        "lastUpdateTime": before["lastUpdateTime"] if updated and before else stamp,
        "reason": reason,
        "message": message,
    }
