"""Parts that several kinds of Gardener's extension API have in their statuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hortus.kube.objects import format_time, parse_time
from hortus.schema import Fields

EXTENSIONS_GROUP: Final = "extensions.gardener.cloud"
VERSION: Final = "v1alpha1"


class GardenCondition(Fields, frozen=True):
    """A condition in Gardener's form: with the time of its last update, and codes of errors."""

    type: str
    """Type of the condition."""
    status: str = "Unknown"
    """True, False, Unknown or Progressing."""
    last_transition_time: str = ""
    """Time at which the status changed."""
    last_update_time: str = ""
    """Time at which anything of it changed."""
    reason: str = ""
    """Reason in CamelCase."""
    message: str = ""
    """Message for people."""
    codes: tuple[str, ...] = ()
    """Codes of known errors, such as ERR_CONFIGURATION_PROBLEM."""


class GardenOperation(Fields, frozen=True):
    """The operation that a controller carries out, or did last."""

    type: str = ""
    """Create, Reconcile, Delete, Migrate or Restore."""
    state: str = ""
    """Processing, Succeeded, Error or Failed."""
    progress: int = 0
    """Percent."""
    description: str = ""
    """Description for people."""
    last_update_time: str | None = None
    """Time of the last change; Gardener writes null where nobody set it."""

    def changed_at(self, now: float) -> float:
        """The time of the last change, `now` where it has none."""
        return parse_time(self.last_update_time) if self.last_update_time else now


class GardenError(Fields, frozen=True):
    """The error of the last operation."""

    description: str = ""
    """Description for people."""
    codes: tuple[str, ...] = ()
    """Codes of known errors."""
    last_update_time: str = ""
    """Time of the error."""


def with_condition(
    conditions: Sequence[GardenCondition], kind: str, status: str, reason: str, message: str, now: float
) -> list[GardenCondition]:
    """The conditions with one that reports this; the same ones where it does so already."""
    old = next((one for one in conditions if one.type == kind), None)
    if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
        return list(conditions)
    time = format_time(now)
    made = GardenCondition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=old.last_transition_time if old is not None and old.status == status else time,
        last_update_time=time,
    )
    kept = [made if one.type == kind else one for one in conditions]
    return kept if old is not None else [*kept, made]
