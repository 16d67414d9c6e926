"""What a reconcile can say at its end: done, come back, try again, or give up until somebody acts.

Returning is success: `None`, or a `Result` that asks to be called again. Raising is failure, and the class carries the
policy: `Retry` is tried again, after a time of its own or with back-off; `Terminal` rests until the object changes.
Each says who has to act and which part of it may be shown in conditions and events; the cause, chained with
`raise ... from`, goes to the log only. Anything else that is raised is retried with back-off.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Actor(StrEnum):
    """Whose turn it is."""

    NOBODY = "nobody"
    """Time heals it: a conflict, a restart, an answer that is still on its way."""
    USER = "user"
    """The owner of the object has to change it."""
    OPERATOR = "operator"
    """Who runs this controller: configuration, permissions, capacity."""
    PROVIDER = "provider"
    """A system that we depend on: the garden, a cloud, a registry, a remote cluster."""


class Result(msgspec.Struct, frozen=True):
    """Success. With `requeue_after` (seconds) the object is looked at again then, unless something happens before.

    The answer of the latest reconcile replaces what earlier ones asked for.
    """

    requeue_after: float | None = None


DONE = Result()


class ReconcileError(Exception):
    """A failure with a policy. `message` may be shown to people, so it never holds a credential.

    `reason` is CamelCase, as conditions and events want it.
    """

    actor: Actor = Actor.NOBODY

    def __init__(self, message: str, *, reason: str = "ReconcileError", actor: Actor | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        if actor is not None:
            self.actor = actor


class Retry(ReconcileError):
    """Failed for now. Tried again `after` seconds, or with the queue's back-off when None."""

    def __init__(
        self,
        message: str,
        *,
        after: float | None = None,
        reason: str = "ReconcileError",
        actor: Actor | None = None,
    ) -> None:
        super().__init__(message, reason=reason, actor=actor)
        self.after = after


class Terminal(ReconcileError):
    """Failed, and trying again is of no use before the object, or something else it depends on, changes."""

    actor = Actor.USER


class DeadlineExceeded(Retry):
    """The reconcile took longer than its controller allows; it was cancelled at an await and is tried again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the reconcile did not end within its deadline of {seconds:g} s", reason="DeadlineExceeded")
        self.seconds = seconds


class HandedOver(Retry):
    """The reconcile was cancelled at an await: its object has become another replica's, which goes on with it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="HandedOver")
