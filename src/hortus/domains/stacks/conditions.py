"""Conditions in the form of Cluster API's v1beta1, and the summary Ready that is made of them.

They differ from metav1's: the transition time moves when status, reason, severity or message changes; a False condition
has a severity, a True one nothing but its type. Ready has the status of the worst of all others (kubernetes-sigs/
cluster-api, `util/conditions` at v1.8.1).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from hortus.engine.conditions import FALSE, READY, TRUE
from hortus.kube.objects import Object, format_time

_COMPARED: Final = ("status", "reason", "severity", "message")


class Severity(StrEnum):
    """The weight of a condition that is False."""

    ERROR = "Error"
    WARNING = "Warning"
    INFO = "Info"


_GROUPS: Final = ((FALSE, Severity.ERROR), (FALSE, Severity.WARNING), (FALSE, Severity.INFO), (TRUE, ""))
"""Groups of conditions, the worst first; all others, such as Unknown, come last."""


def mark_true(status: Object, kind: str, *, now: float) -> None:
    """Set a condition to True in a status."""
    _put(status, {"type": kind, "status": TRUE}, now)


def mark_false(status: Object, kind: str, reason: str, severity: Severity, message: str, *, now: float) -> None:
    """Set a condition to False in a status."""
    found = {"type": kind, "status": FALSE, "severity": severity.value, "reason": reason}
    _put(status, {**found, "message": message} if message else found, now)


def remove(status: Object, kind: str) -> None:
    """Remove a condition from a status."""
    if any(condition["type"] == kind for condition in conditions_of(status)):
        status["conditions"] = [condition for condition in conditions_of(status) if condition["type"] != kind]


def condition_of(status: Object, kind: str) -> Object | None:
    """The condition of that type in a status; None where there is none."""
    return next((condition for condition in conditions_of(status) if condition["type"] == kind), None)


def is_true(status: Object, kind: str) -> bool:
    return (condition_of(status, kind) or {}).get("status") == TRUE


def is_false(status: Object, kind: str) -> bool:
    return (condition_of(status, kind) or {}).get("status") == FALSE


def conditions_of(status: Object) -> list[Object]:
    return list(status.get("conditions") or ())


def summarize(status: Object, *, now: float) -> None:
    """Set Ready to the worst group of the other conditions; without any there is no Ready."""
    others = sorted((c for c in conditions_of(status) if c["type"] != READY), key=lambda c: str(c["type"]))
    if not others:
        return
    worst = min(others, key=_group)
    ready = {name: worst[name] for name in ("status", "severity", "reason", "message") if worst.get(name)}
    _put(status, {"type": READY, **ready}, now)


def _group(condition: Object) -> int:
    found = (condition.get("status"), condition.get("severity", ""))
    return _GROUPS.index(found) if found in _GROUPS else len(_GROUPS)


def _put(status: Object, wanted: Object, now: float) -> None:
    """Set one condition; the list is ordered by type, Ready first, and replaced only where something differs."""
    old = condition_of(status, wanted["type"])
    if old is not None and all(old.get(name) == wanted.get(name) for name in _COMPARED):
        return
    made = {**wanted, "lastTransitionTime": format_time(now)}
    others = [condition for condition in conditions_of(status) if condition["type"] != wanted["type"]]
    status["conditions"] = sorted([*others, made], key=lambda c: (c["type"] != READY, str(c["type"])))
