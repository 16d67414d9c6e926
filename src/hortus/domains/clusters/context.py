"""One reconcile of one Runtime: the Runtime as read, its Shoot, and the words in which its status reports both."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.reading import runtime_of, shoot_name_of
from hortus.domains.clusters.types import ConditionType, Runtime, State
from hortus.engine import FALSE, TRUE, ConditionStatus, ReconcileContext
from hortus.engine.context import Announcement
from hortus.kube.objects import Object
from hortus.schema import Condition


class RuntimeContext(ReconcileContext[Runtime]):
    """Steps set `shoot` as they learn of it."""

    shoot: ShootOutline | None = None
    """The Shoot of the name that the spec gives; None where there is none, and in a deletion where it stays."""
    taken = False
    """True in a deletion if the Shoot of that name has another owner or is kept."""
    shared = False
    """True in a deletion if another Runtime has the same GardenerCluster."""
    unchanged = False
    """True if this reconcile has patched the Shoot and the patch changed nothing."""

    held: frozenset[str] = frozenset()
    """ChangeKinds of the moves to a default that a rollout holds back."""
    moving: frozenset[str] = frozenset()
    """ChangeKinds of the moves to a default that a rollout admits."""

    @cached_property
    def object(self) -> Runtime:
        """The Runtime; without a spec when it cannot be read."""
        return runtime_of(self.raw)

    @property
    def shoot_name(self) -> str:
        """The name of the Shoot that is wanted, also by a spec that cannot be read; empty without one."""
        return shoot_name_of(self.raw)

    @property
    def present_shoot(self) -> ShootOutline:
        """The Shoot, for steps that run when there is one."""
        assert self.shoot is not None, "an earlier step ends the reconcile when there is no Shoot"
        return self.shoot

    # The status as last written.

    def found(self, kind: str) -> Condition | None:
        """The condition of this type."""
        status = self.object.status
        return next((one for one in status.conditions if one.type == kind), None) if status is not None else None

    def says(self, kind: str, status: ConditionStatus, reason: str) -> bool:
        found = self.found(kind)
        return found is not None and (found.status, found.reason) == (status, reason)

    # The status to be.

    def pending(self, kind: str, status: ConditionStatus, reason: str, message: str) -> None:
        """Report that the reconcile is in progress. With a condition that is False, the failed step is retried."""
        self._report(State.PENDING, kind, status, reason, message)

    def failed(self, kind: str, reason: str, message: str) -> None:
        self._report(State.FAILED, kind, FALSE, reason, message)

    def terminating(self, status: ConditionStatus, reason: str, message: str) -> None:
        self._report(State.TERMINATING, ConditionType.DEPROVISIONED, status, reason, message)

    def completed(self, reason: str, message: str) -> None:
        """Report the desired state as reached."""
        self._report(State.READY, ConditionType.CONFIGURED, TRUE, reason, message)
        self.set_status("provisioningCompleted", True)

    def _report(self, state: str, kind: str, status: ConditionStatus, reason: str, message: str) -> None:
        self.set_status("state", state)
        self.condition(kind, status, reason=reason, message=message)

    async def reached(self, kind: str, reason: str, message: str) -> None:
        """Report a condition that is met; clients see it before the next one where it was not reported yet."""
        if self.says(kind, TRUE, reason):
            self.condition(kind, TRUE, reason=reason, message=message)
            return
        self.pending(kind, TRUE, reason, message)
        await self.checkpoint()

    def announcements(self, before: Object) -> Iterator[Announcement]:
        for one in super().announcements(before):
            yield one._replace(message=f"{one.message}: {self.key.namespace}/{self.key.name}")
