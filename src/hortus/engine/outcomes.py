"""Outcomes of a reconcile: success, success with a time to reconcile again, or a failure with a policy.

Returning is success: `None`, or a `Result` that asks to be reconciled again. Raising is failure. `StepError` carries
the policy of a failure: its reason, who owns the next step, when to try again, the condition that reports it, and the
message that conditions and events may show; the cause, chained with `raise ... from`, goes to the log only. Any other
exception is retried with back-off.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final

import msgspec

NEVER: Final = math.inf
"""As `StepError.after`: wait until the object, or something it depends on, changes."""


class Actor(StrEnum):
    """The owner of the next step."""

    NOBODY = "nobody"
    """Waiting is enough: a conflict, a restart, an answer that has not arrived yet."""
    USER = "user"
    """The owner of the object has to change it."""
    OPERATOR = "operator"
    """The operator of this controller: configuration, permissions, capacity."""
    PROVIDER = "provider"
    """A system that this one depends on: the garden, a cloud, a registry, a remote cluster."""


class Result(msgspec.Struct, frozen=True):
    """Success. With `requeue_after` (seconds) the object is reconciled again then, or earlier when something changes.

    The answer of the latest reconcile replaces the one before it.
    """

    requeue_after: float | None = None


DONE = Result()


class StepError(Exception):
    """A step of a reconcile failed. `message` is shown to people, so it never holds a credential.

    `reason` is CamelCase, as conditions and events require. `after` is the time to the next attempt in seconds: None
    for the queue's back-off, `NEVER` to wait for a change. `condition` names the type of the condition that reports the
    failure, empty for the controller's default.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str = "ReconcileError",
        actor: Actor = Actor.NOBODY,
        after: float | None = None,
        condition: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.actor = actor
        self.after = after
        self.condition = condition

    @property
    def is_final(self) -> bool:
        """True when only a change leads to another attempt."""
        return self.after == NEVER


class DeadlineExceeded(StepError):
    """The reconcile took longer than its controller allows; it was cancelled at an await and is tried again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the reconcile did not end within its deadline of {seconds:g} s", reason="DeadlineExceeded")
        self.seconds = seconds


class HandedOver(StepError):
    """The reconcile was cancelled at an await: another replica owns the object now and continues."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="HandedOver")
