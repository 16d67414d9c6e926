"""One look at one Runtime: what is known of it and its Shoot, and the status that comes of it.

Steps change the drafted status; `save` writes it once, tells the events of what changed. Nothing is written or told
when the status says nothing new.
"""

from __future__ import annotations

from collections.abc import Iterator

from hortus.domains.clusters.metrics import RuntimeMetrics
from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.types import FIELD_MANAGER, RUNTIMES, ConditionType, State
from hortus.engine import (
    FALSE,
    NORMAL,
    TRUE,
    WARNING,
    Cache,
    ConditionStatus,
    EventRecorder,
    StatusDraft,
    find_condition,
    redact_text,
)
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.objects import Object


class Setback(Exception):
    """A step cannot be done, and the status is to say why.

    Tried again after `after` seconds; with None the Runtime rests until something changes, which the contract counts as
    an unexpected stop but where it says otherwise.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        kind: str = ConditionType.PROVISIONED,
        after: float | None = None,
        counted: bool = True,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.reason = reason
        self.message = message
        self.after = after
        self.counted = counted and after is None


class Desk:
    """What every visit needs to write a status."""

    def __init__(
        self, *, client: Client, runtimes: Cache, events: EventRecorder, metrics: RuntimeMetrics, clock: Clock
    ) -> None:
        self.client = client
        self.runtimes = runtimes
        self.events = events
        self.metrics = metrics
        self.clock = clock


class Visit:
    def __init__(self, desk: Desk, runtime: Object, live: ShootOutline | None) -> None:
        self._desk = desk
        self.runtime = runtime
        self.live = live
        """The Shoot that is ours; None where there is none."""
        self._draft = StatusDraft(runtime, clock=desk.clock)

    # What is known.

    def has(self, kind: str) -> bool:
        """Whether there is a condition of this type, whatever it says."""
        return find_condition(self.runtime, kind) is not None

    def says(self, kind: str, status: ConditionStatus, reason: str) -> bool:
        """Whether the status said this before the visit."""
        found = find_condition(self.runtime, kind) or {}
        return (found.get("status"), found.get("reason")) == (status, reason)

    def message(self, kind: str) -> str:
        """The message of a condition before the visit; empty where there is none."""
        return str((find_condition(self.runtime, kind) or {}).get("message", ""))

    def speaks_of_now(self, kind: str) -> bool:
        """Whether the condition was set for the present generation."""
        found = find_condition(self.runtime, kind) or {}
        return bool(found.get("observedGeneration") == self.runtime["metadata"].get("generation"))

    # What it comes to.

    def pending(self, kind: str, status: ConditionStatus, reason: str, message: str) -> None:
        """On the way, or failed when the status is False."""
        self._set(State.FAILED if status == FALSE else State.PENDING, kind, status, reason, message)

    def hindered(self, kind: str, reason: str, message: str) -> None:
        """Something failed that is tried again by itself: still on the way."""
        self._set(State.PENDING, kind, FALSE, reason, message)

    def terminating(self, kind: str, status: ConditionStatus, reason: str, message: str) -> None:
        """On the way out, or failed when the status is False."""
        self._set(State.FAILED if status == FALSE else State.TERMINATING, kind, status, reason, message)

    def ready(self, reason: str, message: str) -> None:
        """All is as wanted."""
        self._set(State.READY, ConditionType.CONFIGURED, TRUE, reason, message)
        self._draft.fields["provisioningCompleted"] = True

    def note(self, kind: str, reason: str, message: str) -> None:
        """A condition that is met, whatever the state."""
        self._draft.condition(kind, TRUE, reason=reason, message=message)

    def _set(self, state: str, kind: str, status: ConditionStatus, reason: str, message: str) -> None:
        self._draft.fields["state"] = state
        self._draft.condition(kind, status, reason=reason, message=redact_text(message))

    async def save(self) -> None:
        """Write the status if it says anything new. Raises KubeError."""
        before = self.runtime
        written = await self._draft.write(
            self._desk.client, RUNTIMES, cache=self._desk.runtimes, field_manager=FIELD_MANAGER
        )
        if written is None:
            return
        self.runtime = written
        for condition in _news(before, written):
            kind = WARNING if condition["status"] == FALSE else NORMAL
            metadata = written["metadata"]
            text = f"{condition['message']}: {metadata['namespace']}/{metadata['name']}"
            self._desk.events.event(written, kind, condition["reason"], text)

    def tell(self, kind: str, reason: str, message: str) -> None:
        """An event that no condition speaks of."""
        self._desk.events.event(self.runtime, kind, reason, message)


def _news(before: Object, after: Object) -> Iterator[Object]:
    """The conditions that are new or say something else."""
    for condition in (after.get("status") or {}).get("conditions") or ():
        old = find_condition(before, condition["type"]) or {}
        if any(old.get(field) != condition[field] for field in ("status", "reason", "message")):
            yield condition
