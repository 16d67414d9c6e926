"""Conditions as metav1 has them, in a status that is a plain dict.

The one rule that everybody gets wrong is kept here: `lastTransitionTime` moves when `status` flips and never otherwise,
so that a fleet at rest writes nothing. `observedGeneration` says for which spec a condition speaks. The `mark_*`
functions keep the trio Ready, Reconciling and Stalled in the shape that kstatus, Argo health and `kubectl wait` read.

Sources: KEP-1623; kstatus README (kubernetes-sigs/cli-utils).
"""

from __future__ import annotations

import re
from typing import Final, Literal

from hortus.kube.objects import Object, format_time

ConditionStatus = Literal["True", "False", "Unknown"]
TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"

READY = "Ready"
RECONCILING = "Reconciling"
STALLED = "Stalled"

_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
"""metav1.Condition's pattern, at most 1024 characters."""

_LONGEST_MESSAGE = 32768
"""Bytes metav1.Condition allows a message; characters here, which is never more than it allows for ASCII."""


def find_condition(obj: Object, kind: str) -> Object | None:
    """The condition of that type in an object's status, or None."""
    return _find((obj.get("status") or {}).get("conditions") or (), kind)


def has_condition(obj: Object, kind: str, status: ConditionStatus = TRUE) -> bool:
    """True when the object's condition of that type has that status; one that is absent or lacks it is Unknown."""
    found = find_condition(obj, kind)
    return ((found or {}).get("status") or UNKNOWN) == status


def set_condition(
    status: Object,
    kind: str,
    value: ConditionStatus,
    *,
    reason: str,
    message: str = "",
    generation: int | None = None,
    now: float,
) -> bool:
    """Set one condition in an object's `status` and tell whether anything differs from before.

    The list and the condition are replaced, never changed in place, so that a status shared with a cache stays whole.
    Further fields that some kinds have (`lastProbeTime`, `lastUpdateTime`) are kept as they are, and an empty message
    is not added to a condition without one, because some kinds do not store it. Raises ValueError for a reason that an
    API server would refuse.
    """
    if len(reason) > 1024 or _REASON.fullmatch(reason) is None:
        raise ValueError(f"condition {kind}: reason {reason!r} must be CamelCase, as in 'RotationFailed'")
    conditions: list[Object] = list(status.get("conditions") or ())
    old = _find(conditions, kind)
    new: Object = {**(old or {}), "type": kind, "status": value, "reason": reason}
    if message or old is None or "message" in old:
        new["message"] = message[:_LONGEST_MESSAGE]
    new.pop("observedGeneration", None)
    if generation is not None:
        new["observedGeneration"] = generation
    same_status = old is not None and old.get("status") == value and "lastTransitionTime" in old
    new["lastTransitionTime"] = old["lastTransitionTime"] if old and same_status else format_time(now)
    if old == new:
        return False
    if old is None:
        conditions.append(new)
    else:
        conditions[conditions.index(old)] = new
    status["conditions"] = conditions
    return True


def remove_condition(status: Object, kind: str) -> bool:
    """Take one condition out and tell whether it was there."""
    conditions: list[Object] = list(status.get("conditions") or ())
    left = [condition for condition in conditions if condition.get("type") != kind]
    if len(left) == len(conditions):
        return False
    status["conditions"] = left
    return True


def mark_ready(status: Object, *, reason: str, message: str = "", generation: int | None = None, now: float) -> bool:
    """All is as the spec wants it: Ready is True, Reconciling and Stalled are gone."""
    changed = set_condition(status, READY, TRUE, reason=reason, message=message, generation=generation, now=now)
    return remove_condition(status, RECONCILING) | remove_condition(status, STALLED) | changed


def mark_reconciling(
    status: Object, *, reason: str, message: str = "", generation: int | None = None, now: float
) -> bool:
    """On the way: Reconciling is True, Ready is Unknown, Stalled is gone."""
    changed = set_condition(status, RECONCILING, TRUE, reason=reason, message=message, generation=generation, now=now)
    changed |= set_condition(status, READY, UNKNOWN, reason=reason, message=message, generation=generation, now=now)
    return remove_condition(status, STALLED) | changed


def mark_stalled(status: Object, *, reason: str, message: str, generation: int | None = None, now: float) -> bool:
    """Somebody has to act: Stalled is True, Ready is False, Reconciling is gone."""
    changed = set_condition(status, STALLED, TRUE, reason=reason, message=message, generation=generation, now=now)
    changed |= set_condition(status, READY, FALSE, reason=reason, message=message, generation=generation, now=now)
    return remove_condition(status, RECONCILING) | changed


def _find(conditions: object, kind: str) -> Object | None:
    for condition in conditions if isinstance(conditions, list | tuple) else ():
        if condition.get("type") == kind:
            found: Object = condition
            return found
    return None
