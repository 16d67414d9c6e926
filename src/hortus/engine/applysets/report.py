"""The result of one run for each object of a set."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from hortus.engine.applysets.drift import FieldDrift
from hortus.engine.applysets.inventory import Member
from hortus.engine.applysets.readiness import NOT_FOUND, Readiness


class ObjectAction(StrEnum):
    """The action taken on one object."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    """It was as wanted; nothing was sent."""
    PENDING = "pending"
    """Would be done: in the report of a plan."""
    WAITING = "waiting"
    """Not tried yet: what it needs is not ready."""
    FAILED = "failed"
    PRUNED = "pruned"
    PRUNING = "pruning"
    """Deleted, and held by finalizers for now."""
    HELD = "held"
    """It left the set and stays for now: it holds something, or the set was given suspiciously little."""
    KEPT = "kept"
    """It left the set and stays: it is not ours any more."""
    RESTORED = "restored"
    """It left the set and stays, with what it had before the set took it over."""


class ObjectOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One object. `message` names it and says what is wrong; `error` is what was raised."""

    member: Member
    action: ObjectAction
    readiness: Readiness = NOT_FOUND
    drift: tuple[FieldDrift, ...] = ()
    """The fields that differed before it was applied."""
    message: str = ""
    error: Exception | None = None
    takes_over: bool = False
    """True in a plan for an object of somebody else that would become one of the set."""
    blocks: bool = True
    """True when what is deleted after it has to wait until it is gone."""


_UNDONE = (ObjectAction.FAILED, ObjectAction.HELD, ObjectAction.PENDING, ObjectAction.PRUNING, ObjectAction.WAITING)


class ApplyReport:
    """The outcomes of one run, in the order in which they came."""

    def __init__(self, outcomes: Iterable[ObjectOutcome] = ()) -> None:
        self.outcomes = list(outcomes)
        self.tried_only = False
        """True when a dry run was refused, and nothing was written."""

    def of(self, *actions: ObjectAction) -> list[ObjectOutcome]:
        """The outcomes with one of these actions."""
        return [outcome for outcome in self.outcomes if outcome.action in actions]

    @property
    def failures(self) -> list[ObjectOutcome]:
        return self.of(ObjectAction.FAILED)

    @property
    def complete(self) -> bool:
        """True when the cluster holds exactly the set: nothing failed, waits, or is still to be deleted."""
        return not self.of(*_UNDONE)

    @property
    def ready(self) -> bool:
        """True when it is complete and every object of it is Current."""
        return self.complete and all(
            outcome.readiness.ready for outcome in self.of(ObjectAction.APPLIED, ObjectAction.UNCHANGED)
        )

    @property
    def writes(self) -> int:
        return len(self.of(ObjectAction.APPLIED, ObjectAction.PRUNED, ObjectAction.PRUNING, ObjectAction.RESTORED))

    @property
    def retry_after(self) -> float | None:
        """The longest pause that a server asked for, in seconds."""
        asked = [getattr(outcome.error, "retry_after", None) for outcome in self.failures]
        return max((seconds for seconds in asked if seconds is not None), default=None)

    def message(self, *, limit: int = 5) -> str:
        """The problems, for a condition: at most `limit` objects by name, and the number of the others."""
        wrong = [
            outcome.message or f"{outcome.member}: {outcome.readiness.message}"
            for outcome in self.outcomes
            if outcome.action in _UNDONE
            or (outcome.action in (ObjectAction.APPLIED, ObjectAction.UNCHANGED) and not outcome.readiness.ready)
        ]
        more = f"; and {len(wrong) - limit} more" if len(wrong) > limit else ""
        return "; ".join(wrong[:limit]) + more
