"""The status of a Flux object as its controllers write it: conditions, generation, and requests that were served."""

from __future__ import annotations

from typing import Any

from hortus.kube.objects import Object, format_time
from hortus.simulation.flux.kinds import REQUESTED


def report(obj: Object, *, now: float, reason: str, message: str, ready: bool, **more: Any) -> Object:
    """A merge patch of the status that makes Ready say this; `more` are further fields.

    A generation counts as observed when it was reconciled without a failure.
    """
    return {
        "status": {**_seen(obj, ready=ready), "conditions": [_ready(obj, now, reason, message, ready=ready)], **more}
    }


def differs(obj: Object, patch: Object) -> bool:
    """Reports whether the patch would change the status."""
    found = obj.get("status") or {}
    return any(found.get(name) != value for name, value in patch["status"].items())


def is_requested(obj: Object) -> bool:
    """Reports whether somebody asks for a reconcile that was not done yet."""
    wanted = (obj["metadata"].get("annotations") or {}).get(REQUESTED)
    return wanted is not None and wanted != (obj.get("status") or {}).get("lastHandledReconcileAt")


def ready_of(obj: Object) -> Object:
    """The condition Ready; empty where there is none."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == "Ready"), {})


def _seen(obj: Object, *, ready: bool) -> Object:
    asked = (obj["metadata"].get("annotations") or {}).get(REQUESTED)
    served = {} if asked is None else {"lastHandledReconcileAt": asked}
    return {"observedGeneration": obj["metadata"].get("generation", 1), **served} if ready else served


def _ready(obj: Object, now: float, reason: str, message: str, *, ready: bool) -> Object:
    status, found = str(ready), ready_of(obj)
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": obj["metadata"].get("generation", 1),
        "lastTransitionTime": found["lastTransitionTime"] if found.get("status") == status else format_time(now),
    }
