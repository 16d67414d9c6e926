"""The context of one reconcile: the object as read, the status to be, and the ways to write.

Steps draft the status; it is written once, when the last step is over, and only when it differs. A contract that wants
an intermediate state to be seen calls `checkpoint`. The context knows the client, the field manager and the cache of
the answer, so no step hands them over.

All steps of a reconcile read one spec. The answer to a write may hold a later one, which no check of an earlier step
has seen: then the reconcile ends with `Superseded`, and the next one begins with the object as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from hortus.engine.apply import Applier
from hortus.engine.cache import Cache
from hortus.engine.conditions import FALSE, READY, ConditionStatus, find_condition
from hortus.engine.events import NORMAL, WARNING, EventRecorder
from hortus.engine.finalizers import add_finalizer, has_finalizer, is_deleting, remove_finalizer
from hortus.engine.owning import OwnedApplier
from hortus.engine.redaction import redact_text
from hortus.engine.status import StatusDraft
from hortus.engine.typed import TypedCache, read, resource_of
from hortus.kube import Client, PatchKind
from hortus.kube.clock import Clock
from hortus.kube.objects import Object, ObjectKey, Resource, key_of
from hortus.kube.patches import apply_merge_patch
from hortus.schema import Kind

K = TypeVar("K", bound=Kind)

_JUDGED = ("uid", "generation", "labels", "deletionTimestamp")
"""Fields of the metadata that differ when steps may decide otherwise; the generation stands for the spec."""


class Superseded(Exception):
    """The object was changed by somebody else during its reconcile: what earlier steps have checked is not what later
    steps would read."""


class Announcement(NamedTuple):
    """An event that a written status calls for."""

    kind: str
    """NORMAL or WARNING."""
    reason: str
    message: str


class Wiring(Generic[K]):
    """The clients, caches and names that all reconciles of one controller share. Made by `wire`."""

    def __init__(
        self,
        *,
        kind: type[K],
        client: Client,
        cache: Cache,
        owned: dict[Resource, Cache],
        events: EventRecorder,
        field_manager: str,
        clock: Clock,
        holds: Callable[[ObjectKey], bool],
        applies_status: bool = False,
    ) -> None:
        self.kind = kind
        self.resource = resource_of(kind)
        self.client = client
        self.cache = TypedCache(kind, cache)
        self.owned = owned
        """The caches of the kinds that the controller owns."""
        self.events = events
        self.field_manager = field_manager
        self.applier = Applier(client, field_manager=field_manager)
        self.owning = OwnedApplier(client, self.applier, owner=self.resource, field_manager=field_manager)
        self.clock = clock
        self.holds = holds
        """True for an object that this replica works on."""
        self.applies_status = applies_status
        """True where a contract wants the status written by server-side apply."""


class ReconcileContext(Generic[K]):
    """One reconcile of one object. A controller whose steps share more derives from it."""

    def __init__(self, wiring: Wiring[K], raw: Object) -> None:
        self.wiring = wiring
        self.key: ObjectKey = key_of(raw)
        self.raw = raw
        """As it is in the cache: read only."""

    @cached_property
    def draft(self) -> StatusDraft:
        """The status to be."""
        return StatusDraft(self.raw, clock=self.wiring.clock)

    @cached_property
    def object(self) -> K:
        """The object as its struct. Raises NotReadable."""
        return read(self.wiring.kind, self.raw)

    @property
    def now(self) -> float:
        """Seconds since the epoch, by the manager's clock."""
        return self.wiring.clock.now()

    @property
    def is_deleting(self) -> bool:
        return is_deleting(self.raw)

    # Reporting.

    def condition(self, kind: str, value: ConditionStatus, *, reason: str, message: str = "") -> bool:
        """Draft one condition, for the generation that was read; returns whether it differs."""
        return self.draft.condition(kind, value, reason=reason, message=self._shown(kind, message))

    def ready(self, reason: str, message: str = "") -> None:
        """Draft Ready, without Reconciling and Stalled."""
        self.draft.ready(reason=reason, message=self._shown(READY, message))

    def reconciling(self, reason: str, message: str = "") -> None:
        """Draft Reconciling, with Ready unknown."""
        self.draft.reconciling(reason=reason, message=self._shown(READY, message))

    def stalled(self, reason: str, message: str) -> None:
        """Draft Stalled, with Ready false."""
        self.draft.stalled(reason=reason, message=self._shown(READY, message))

    def _shown(self, kind: str, message: str) -> str:
        """The message without credentials. One that the condition holds already went through here: the search costs
        more than the rest of a reconcile that changes nothing."""
        known = find_condition(self.raw, kind)
        return message if known is not None and known.get("message") == message else redact_text(message)

    def set_status(self, field: str, value: Any) -> None:
        """Draft one field of the status that is no condition; None removes it."""
        if value is None:
            self.draft.fields.pop(field, None)
        else:
            self.draft.fields[field] = value

    def drafted(self, field: str) -> Any:
        """One field of the status as it is drafted; None where there is none."""
        return self.draft.fields.get(field)

    def event(self, kind: str, reason: str, message: str) -> None:
        """Record an event about the object; `kind` is NORMAL or WARNING."""
        self.wiring.events.event(self.raw, kind, reason, message)

    async def checkpoint(self) -> bool:
        """Write the drafted status now; returns whether anything was written. Raises KubeError, Superseded.

        For contracts that want an intermediate state seen; the end of the reconcile writes by itself.
        """
        if "draft" not in self.__dict__:
            return False
        before, wiring = self.raw, self.wiring
        write = self.draft.apply if wiring.applies_status else self.draft.write
        written = await write(
            wiring.client, wiring.resource, cache=wiring.cache.raw, field_manager=wiring.field_manager
        )
        if written is None:
            return False
        self._read_again(written)
        for one in self.announcements(before):
            self.event(one.kind, one.reason, one.message)
        self._check_same(before)
        return True

    def announcements(self, before: Object) -> Iterator[Announcement]:
        """The events of a status just written over that of `before`: one for each condition that is new or reports
        something else, a warning where it is False."""
        for condition in (self.raw.get("status") or {}).get("conditions") or ():
            kind, reason = condition.get("type", ""), condition.get("reason")
            old = find_condition(before, kind) or {}
            # Another writer's condition may lack fields, and an event needs a reason.
            if reason and any(old.get(field) != condition.get(field) for field in ("status", "reason", "message")):
                severity = WARNING if condition.get("status") == FALSE else NORMAL
                yield Announcement(severity, reason, condition.get("message", ""))

    # Writing.

    async def ensure_finalizer(self, finalizer: str) -> bool:
        """Add the finalizer; returns whether it was missing. Raises KubeError, Conflict once deletion has begun, and
        Superseded."""
        if has_finalizer(self.raw, finalizer):
            return False
        self._take(await add_finalizer(self.wiring.client, self.wiring.resource, self.raw, finalizer))
        return True

    async def remove_finalizer(self, finalizer: str) -> None:
        """Remove the finalizer, after which the object may be gone. Raises KubeError, Superseded."""
        left = await remove_finalizer(self.wiring.client, self.wiring.resource, self.raw, finalizer)
        if left is not None and left is not self.raw:
            self._take(left)

    async def patch(self, patch: Object, *, goes_on: bool = False) -> None:
        """Merge `patch` into the object itself, not into its status. Raises KubeError, and Superseded where the spec or
        the labels differ then: also when `patch` says so, unless with `goes_on` that is all that differs."""
        before, wiring = self.raw, self.wiring
        written = await wiring.client.patch(
            wiring.resource,
            before["metadata"]["name"],
            patch,
            before["metadata"].get("namespace", ""),
            PatchKind.MERGE,
            field_manager=wiring.field_manager,
        )
        self._take(written, judged=not (goes_on and _only_patched(before, patch, written)))

    async def apply(self, resource: Resource, config: Object, *, owned: bool = True, adopt: bool = False) -> Object:
        """Apply `config`, with no call when the server holds it; returns the object as it is there.

        Name and namespace are the object's own where `config` has none; `owned` makes the object its controller, so
        that it is deleted with it. An object of that name that somebody else made is refused with reason ObjectTaken;
        `adopt` takes it over when it has no controller. `resource` is one of the controller's `owns`. Raises StepError,
        KubeError, ValueError.
        """
        metadata = {"name": self.key.name, "namespace": self.key.namespace, **config.get("metadata", {})}
        wanted = {**config, "metadata": {name: value for name, value in metadata.items() if value}}
        cache = self.wiring.owned[resource]
        if owned:
            return await self.wiring.owning.apply(resource, wanted, self.raw, cache=cache, adopt=adopt)
        return (await self.wiring.applier.apply(resource, wanted, cache=cache)).object

    def _take(self, written: Object, *, judged: bool = True) -> None:
        """Go on with the answer to a write of the object."""
        self.wiring.cache.raw.learn(written)
        if "draft" in self.__dict__:
            self.draft.rebase(written)
        before = self.raw
        self._read_again(written)
        if judged:
            self._check_same(before)

    def _check_same(self, before: Object) -> None:
        """Raises Superseded when spec, labels, deletion or identity differ from those of `before`."""
        old, new = before["metadata"], self.raw["metadata"]
        if any(old.get(field) != new.get(field) for field in _JUDGED):
            raise Superseded(f"{self.wiring.resource.kind} {self.key} was changed while it was reconciled")

    def _read_again(self, raw: Object) -> None:
        self.raw = raw
        self.__dict__.pop("object", None)


def _only_patched(before: Object, patch: Object, written: Object) -> bool:
    """Reports whether spec and labels are those of `before` with `patch`, and it is the same object."""
    old, new, wanted = before["metadata"], written["metadata"], apply_merge_patch(before, patch)
    return (
        all(old.get(field) == new.get(field) for field in ("uid", "deletionTimestamp"))
        and (wanted["metadata"].get("labels") or {}) == (new.get("labels") or {})
        and wanted.get("spec") == written.get("spec")
    )
