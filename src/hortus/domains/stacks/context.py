"""The part that all controllers of this domain share: conditions with a severity, and failures that set one.

A step drafts its conditions by `true`, `false` and `drop`, or raises `ConditionError`. Ready is made of the others
whenever the status is written. Conditions bring no events of their own: the contract names each event.

A status with other conditions is written for the version of the object that was read. Where that is not the latest, the
drafted changes are merged into the latest, condition by condition, so that those of other writers stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hortus.domains.stacks import conditions
from hortus.domains.stacks.conditions import Severity
from hortus.engine import (
    WARNING,
    Actor,
    Announcement,
    KindController,
    ReconcileContext,
    Result,
    StepError,
    metadata_of,
)
from hortus.engine.context import Superseded
from hortus.engine.status import StatusDraft
from hortus.kube.errors import Conflict, NotFound
from hortus.kube.objects import Object
from hortus.schema import Kind

if TYPE_CHECKING:
    from hortus.engine.deputies import Action, Deputies

_TRIES: Final = 5
"""Attempts to write a status, as in cluster-api's `util/patch`."""

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

    @cached_property
    def draft(self) -> StatusDraft:
        return conditions.ConditionsDraft(self.raw, clock=self.wiring.clock)

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

    async def require(self, deputies: Deputies, action: Action, *, condition: str) -> None:
        """Raises ConditionError, with the reason NotPermitted, for what objects of this namespace may not have done."""
        try:
            await deputies.require(self.key.namespace, action)
        except StepError as error:
            raise ConditionError(
                error.message,
                condition=condition,
                reason=error.reason,
                severity=Severity.ERROR,
                actor=error.actor,
                after=error.after,
            ) from error

    def announcements(self, before: Object) -> Iterator[Announcement]:
        return iter(())

    async def checkpoint(self) -> bool:
        """Write the drafted status now, merged with what others wrote; returns whether anything was written.

        Raises KubeError, Superseded: also where another writer changed the same condition.
        """
        read = self.raw
        for left in reversed(range(_TRIES)):
            if "draft" in self.__dict__:
                conditions.summarize(self.draft.fields, now=self.now)
            try:
                written = await super().checkpoint()
            except Conflict:
                if not left:
                    raise
                if not await self._read_latest():
                    return False
            else:
                self._check_same(read)
                return written
        raise AssertionError("the last attempt returns or raises")

    async def _read_latest(self) -> bool:
        """Go on with the object as the server has it; False where it is gone. Raises KubeError, Superseded."""
        try:
            latest = await self.wiring.client.get(self.wiring.resource, self.key.name, self.key.namespace)
        except NotFound:
            return False
        if metadata_of(latest).uid != metadata_of(self.raw).uid:
            raise Superseded(f"{self.wiring.resource.kind} {self.key} was made again while it was reconciled")
        self._take(latest, judged=False)
        return True


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
