"""Conditions in the form of Cluster API's v1beta1, and the summary Ready that is made of them.

They differ from metav1's: the transition time moves when status, reason, severity or message changes; a False condition
has a severity, a True one nothing but its type. Ready has the status of the worst of all others (kubernetes-sigs/
cluster-api, `util/conditions` at v1.8.1).

Other controllers may write conditions into the same list. `merged` keeps the change of each writer, by the rules of
`util/conditions/patch.go` there; a test compares random lists with that package.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from hortus.engine.conditions import FALSE, READY, TRUE
from hortus.engine.context import Superseded
from hortus.engine.status import StatusDraft
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


class ConditionConflict(Superseded):
    """A condition was changed by this reconcile and, to something else, by another writer."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"the condition {kind} was changed by another writer meanwhile")


def merged(before: Iterable[Object], after: Iterable[Object], latest: Iterable[Object]) -> list[Object]:
    """The conditions `latest` with the changes that made `after` of `before`. Raises ConditionConflict.

    Where both changed a condition, that is a conflict unless they agree; then the time of `latest` stays. Ready is
    never one: it is made of the others again.
    """
    old, new, found = ({str(one["type"]): one for one in each} for each in (before, after, latest))
    for kind in sorted(old.keys() | new.keys()):
        base, wanted, there = old.get(kind), new.get(kind), found.get(kind)
        if wanted == base or (wanted is not None and there is not None and _is_same(there, wanted)):
            continue
        expected = there == base if wanted is not None else there is None or _is_same(there, base or {})
        if not expected and kind != READY:
            raise ConditionConflict(kind)
        if wanted is None:
            found.pop(kind, None)
        else:
            found[kind] = wanted
    return _ordered(found.values())


def _is_same(one: Object, other: Object) -> bool:
    """Reports whether two conditions of a type say the same; the time does not count."""
    return all((one.get(name) or "") == (other.get(name) or "") for name in _COMPARED)


def _ordered(found: Iterable[Object]) -> list[Object]:
    """Ready first, the others by type."""
    return sorted(found, key=lambda one: (one["type"] != READY, str(one["type"])))


def _group(condition: Object) -> int:
    found = (condition.get("status"), condition.get("severity", ""))
    return _GROUPS.index(found) if found in _GROUPS else len(_GROUPS)


def _put(status: Object, wanted: Object, now: float) -> None:
    """Set one condition; the list is ordered by type, Ready first, and replaced only where something differs."""
    old = condition_of(status, wanted["type"])
    if old is not None and _is_same(old, wanted):
        return
    made = {**wanted, "lastTransitionTime": format_time(now)}
    others = [condition for condition in conditions_of(status) if condition["type"] != wanted["type"]]
    status["conditions"] = _ordered([*others, made])


class ConditionsDraft(StatusDraft):
    """A status whose conditions are merged with what others wrote meanwhile."""

    def patch(self, *, exclusive: bool = False) -> Object | None:
        changed = self.fields.get("conditions") != self._before.get("conditions")
        return super().patch(exclusive=exclusive or changed)

    def rebase(self, live: Object) -> None:
        """Draft the same changes over `live`. Raises ConditionConflict."""
        before, after = self._before.get("conditions"), self.fields.get("conditions")
        super().rebase(live)
        if after != before:
            latest = conditions_of(live.get("status") or {})
            self.fields["conditions"] = merged(before or (), after or (), latest)
