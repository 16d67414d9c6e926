"""The part that all controllers of this domain share: conditions with a severity, and failures that set one.

A step drafts its conditions by `true`, `false` and `drop`, or raises `ConditionError`. Ready is made of the others
whenever the status is written. Conditions bring no events of their own: the contract names each event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from hortus.domains.stacks import conditions
from hortus.domains.stacks.conditions import Severity
from hortus.engine import WARNING, Actor, Announcement, KindController, ReconcileContext, Result, StepError
from hortus.kube.objects import Object
from hortus.schema import Kind

K = TypeVar("K", bound=Kind)
C = TypeVar("C", bound="StackContext[Any]")


class ConditionError(StepError):
    """A step failed, and the condition that says so is False with a severity.

    `event` records a Warning with the reason as well. `after` is as in StepError. With `watched` it is no failure but a
    wait, which ends with the change of an object that is watched.
    """

    def __init__(
        self,
        message: str,
        *,
        condition: str,
        reason: str,
        severity: Severity,
        after: float | None = None,
        actor: Actor = Actor.NOBODY,
        event: str = "",
        watched: bool = False,
    ) -> None:
        super().__init__(message, reason=reason, actor=actor, after=after, condition=condition)
        self.severity = severity
        self.event = event
        self.watched = watched


class StackContext(ReconcileContext[K]):
    """One reconcile of one object of this domain."""

    def true(self, kind: str) -> None:
        """Draft a condition as True."""
        conditions.mark_true(self.draft.fields, kind, now=self.now)

    def false(self, kind: str, reason: str, severity: Severity, message: str = "") -> None:
        """Draft a condition as False, without credentials in its message."""
        conditions.mark_false(self.draft.fields, kind, reason, severity, self._shown(kind, message), now=self.now)

    def drop(self, kind: str) -> None:
        """Draft the removal of a condition."""
        conditions.remove(self.draft.fields, kind)

    def is_true(self, kind: str) -> bool:
        """Reports whether the condition is True in the draft."""
        return conditions.is_true(self.draft.fields, kind)

    def is_false(self, kind: str) -> bool:
        """Reports whether the condition is False in the draft."""
        return conditions.is_false(self.draft.fields, kind)

    def warn(self, reason: str, message: str) -> None:
        """Record a Warning about the object."""
        self.event(WARNING, reason, message)

    def announcements(self, before: Object) -> Iterator[Announcement]:
        return iter(())

    async def checkpoint(self) -> bool:
        if "draft" in self.__dict__:
            conditions.summarize(self.draft.fields, now=self.now)
        return await super().checkpoint()


class StackController(KindController[C]):
    """Base of the controllers of this domain."""

    def report(self, context: C, error: StepError) -> None:
        """Draft the condition of the failure; a failure without one is a Warning."""
        if not isinstance(error, ConditionError):
            context.warn(error.reason, error.message)
            return
        context.false(error.condition, error.reason, error.severity, error.message)
        if error.event:
            context.warn(error.event, error.message)

    def outcome(self, context: C, error: StepError) -> Result | None:
        """A failure with a time for the next attempt is no failure to the queue: its back-off does not grow."""
        if isinstance(error, ConditionError) and error.watched:
            return Result()
        if isinstance(error, ConditionError) and error.after is not None and not error.is_final:
            return Result(requeue_after=error.after)
        return super().outcome(context, error)
