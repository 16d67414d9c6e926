"""Failures of agents: each names its object and the phase, and says by its class when to try again.

A conflict, an unreachable server and an overloaded one are tried again with back-off. What the server refuses for its
content or for want of permission is tried again after minutes: the object does not change by itself, but quotas,
admission webhooks and roles do, and no watch shows that.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from hortus.domains.agents.names import CERTIFICATES
from hortus.domains.agents.operating.dependents import Dependent
from hortus.engine import Actor, StepError
from hortus.engine.applysets import ForeignObject
from hortus.kube.errors import ApiError, BadRequest, Conflict, Forbidden, Invalid, KubeError, NotServed, TransportError

REFUSED_AGAIN: Final = 300.0
"""Seconds until an object is tried again that was refused for its content, or is somebody else's."""
FORBIDDEN_AGAIN: Final = 60.0
"""Seconds until an object is tried again for which permission was missing."""
SEVERAL: Final = "Multiple Errors:"
"""The heading of several failures, as in the Go operator."""


class AgentPhase(StrEnum):
    """The part of a reconcile that failed, as messages say it."""

    READ = "read"
    DRY_RUN = "dry run"
    RECORD = "record"
    APPLY = "apply"
    PRUNE = "delete"
    MIGRATE = "migrate"


class AgentReason(StrEnum):
    """Stable reasons of failures, in logs and metrics."""

    REFUSED = "ObjectRefused"
    FORBIDDEN = "NotPermitted"
    TAKEN = "ObjectTaken"
    CONFLICT = "ObjectChanged"
    UNREACHABLE = "ServerUnavailable"
    BAD_RELEASE = "ReleaseUnreadable"
    NAME_TAKEN = "NameTaken"
    BAD_OPTIONS = "UnusableOptions"
    UNKNOWN_WORKLOAD = "UnknownWorkload"


class _Cause(msgspec.Struct):
    field: str = ""


class _Details(msgspec.Struct):
    causes: tuple[_Cause, ...] = ()


class ObjectFailure(NamedTuple):
    """One call that failed."""

    phase: AgentPhase
    object: Dependent
    error: KubeError

    @property
    def text(self) -> str:
        """AgentPhase, object and reason. A server quotes values in its refusals, which of a Secret nobody may read."""
        said = str(self.error)
        if isinstance(self.error, ForeignObject):
            said = self.error.problem
        if self.object.kind == "Secret" and isinstance(self.error, ApiError):
            fields = [cause.field for cause in msgspec.convert(self.error.details, _Details).causes]
            said = f"{self.error.status_reason}: {', '.join(filter(None, fields)) or 'see the API server'}"
        elif isinstance(self.error, NotServed) and self.object.group == CERTIFICATES.group:
            said = "the cluster does not serve this kind: install cert-manager, or remove option certificate"
        return f"{self.phase} of {self.object}: {said}"

    @property
    def reason(self) -> AgentReason:
        match self.error:
            case ForeignObject():
                return AgentReason.TAKEN
            case Forbidden():
                return AgentReason.FORBIDDEN
            case Invalid() | BadRequest():
                return AgentReason.REFUSED
            case Conflict():
                return AgentReason.CONFLICT
            case _:
                return AgentReason.UNREACHABLE


class AgentError(StepError):
    """Calls for objects of an agent failed."""

    def __init__(self, failures: Iterable[ObjectFailure]) -> None:
        self.failures = tuple(failures)
        texts = [failure.text for failure in self.failures]
        reasons = [failure.reason for failure in self.failures]
        # One that passes by itself decides: then the others are tried again as well.
        reason = next((one for one in reversed(AgentReason) if one in reasons), AgentReason.UNREACHABLE)
        super().__init__(
            texts[0] if len(texts) == 1 else "\n".join([SEVERAL, *texts]),
            reason=reason,
            actor=_ACTORS.get(reason, Actor.PROVIDER),
            after=_after(reason, self.failures),
        )


_ACTORS: Final = {AgentReason.REFUSED: Actor.USER, AgentReason.TAKEN: Actor.USER, AgentReason.FORBIDDEN: Actor.OPERATOR}


def _after(reason: AgentReason, failures: Iterable[ObjectFailure]) -> float | None:
    if reason in (AgentReason.REFUSED, AgentReason.TAKEN):
        return REFUSED_AGAIN
    if reason is AgentReason.FORBIDDEN:
        return FORBIDDEN_AGAIN
    asked = [
        failure.error.retry_after
        for failure in failures
        if isinstance(failure.error, ApiError | TransportError) and failure.error.retry_after is not None
    ]
    return max(asked, default=None)
