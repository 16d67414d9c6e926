"""Conditions of Flux in a Shoot, from its objects as they are. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from hortus.domains.garden.extension.topic import TopicCondition
from hortus.domains.garden.flux.names import CONTROLLERS_HEALTHY
from hortus.engine.applysets import ObjectStatus, readiness
from hortus.kube.objects import Object, key_of
from hortus.schema import ObjectMeta

READY: Final = "Ready"
TRUE, FALSE, UNKNOWN, PROGRESSING = "True", "False", "Unknown", "Progressing"


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = UNKNOWN
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class _Status(msgspec.Struct, rename="camel"):
    conditions: tuple[_Condition, ...] = ()
    observed_generation: int = 0


class _Spec(msgspec.Struct):
    suspend: bool | None = None


class _Synced(msgspec.Struct):
    """A source or a Kustomization, as far as its state goes."""

    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class SyncState(msgspec.Struct, frozen=True):
    """The state of a source or a Kustomization."""

    status: str
    """True, False, Unknown or Progressing."""
    reason: str
    message: str

    @property
    def is_ready(self) -> bool:
        """True for one that is ready."""
        return self.status == TRUE

    @property
    def has_failed(self) -> bool:
        """True for one that says itself that it is not ready."""
        return self.status == FALSE

    def condition(self, type_: str) -> TopicCondition:
        """The state as a condition of the Extension."""
        return TopicCondition(type_, self.status, self.reason, self.message)


def sync_state(found: Object | None, kind: str) -> SyncState:
    """The state of an object of Flux, or of one that is missing."""
    if found is None:
        return SyncState(FALSE, f"{kind}Missing", f"The {kind} does not exist.")
    one = msgspec.convert(found, _Synced)
    name = f"{kind} {key_of(found)}"
    if one.spec.suspend:
        return SyncState(TRUE, "Suspended", f"{name} is suspended: Flux leaves it as it is.")
    ready = next((known for known in one.status.conditions if known.type == READY), None)
    if ready is None:
        return SyncState(PROGRESSING, "NotReconciled", f"{name} has not been reconciled by Flux yet.")
    # After a failure Flux raises the generation of the condition alone.
    if (ready.observed_generation or one.status.observed_generation) not in (0, one.metadata.generation):
        return SyncState(PROGRESSING, "Outdated", f"{name} is being reconciled by Flux.")
    reason = ready.reason or "Unknown"
    status = ready.status if ready.status in (TRUE, FALSE) else PROGRESSING
    return SyncState(status, reason, f"{name}: {ready.message}" if ready.message else f"{name} is {reason}.")


def controllers_condition(names: Iterable[str], found: Iterable[Object]) -> TopicCondition:
    """The health of Flux's controllers: the Deployments of these names among those that are there."""
    there = {key_of(one).name: one for one in found}
    waiting = ""
    for name in sorted(names):
        if name not in there:
            return _controllers(FALSE, "DeploymentMissing", f"Deployment {name} does not exist.")
        state = readiness(there[name])
        if state.status is ObjectStatus.FAILED:
            return _controllers(FALSE, "DeploymentFailed", f"Deployment {name}: {state.message}")
        if not state.ready:
            waiting = waiting or f"Deployment {name}: {state.message or 'is not ready'}"
    if waiting:
        return _controllers(PROGRESSING, "DeploymentNotReady", waiting)
    return _controllers(TRUE, "FluxRunning", "All controllers of Flux are ready.")


def _controllers(status: str, reason: str, message: str) -> TopicCondition:
    return TopicCondition(CONTROLLERS_HEALTHY, status, reason, message)
