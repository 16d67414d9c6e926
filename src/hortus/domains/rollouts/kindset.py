"""The ChangeKinds of a process: the controller that compiles them, and the trackers of their objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hortus.domains.rollouts.changekinds import ChangeKindError, CompiledKind, edition_of
from hortus.domains.rollouts.tracking import Announce, ChangeTracker
from hortus.engine import (
    NEVER,
    Actor,
    Cache,
    Change,
    KindController,
    NotReadable,
    ReconcileContext,
    StepError,
    Steps,
    Wiring,
    read,
)
from hortus.engine.rollouts.changekinds import ChangeKindSpec
from hortus.engine.rollouts.types import ChangeKind
from hortus.engine.within import within
from hortus.kube.objects import Object, Resource

SYNC_TIME = 10.0
"""Seconds that the first list of the objects may take before it is reported."""
MAX_PROBLEMS = 3
"""Objects on which an expression fails that a condition names."""


class KindSet:
    """The trackers of all ChangeKinds that compile, by name."""

    def __init__(self, cache: Callable[[ChangeKindSpec, Resource], Cache], announce: Announce) -> None:
        """`cache` gives the cache of the objects of a ChangeKind with this spec, on the management cluster."""
        self._cache = cache
        self._announce = announce
        self._trackers: dict[str, ChangeTracker] = {}
        self.problems: dict[str, str] = {}
        """ChangeKinds that do not compile, with the reason."""

    def get(self, name: str) -> ChangeTracker:
        """The tracker of a ChangeKind. Raises StepError where there is none."""
        found = self._trackers.get(name)
        if found is None:
            raise StepError(
                f"ChangeKind {name} is not there, or its expressions do not compile: see `kubectl get changekinds`",
                reason="ChangeKindNotReady",
                actor=Actor.USER,
                after=NEVER,
            )
        return found

    def find(self, name: str) -> ChangeTracker | None:
        return self._trackers.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._trackers)

    def on_change(self, change: Change) -> None:
        """Follow the objects of a ChangeKind that is new or has changed, and no longer those of one that is gone."""
        name = change.key.name
        kind = None if change.new is None else _readable(change.new)
        known = self._trackers.get(name)
        if known is not None and kind is not None and known.kind.edition == edition_of(kind):
            return
        if known is not None:
            del self._trackers[name]
            known.detach()
        self.problems.pop(name, None)
        if kind is not None:
            self._follow(kind)
        self._announce(name, "")

    def _follow(self, kind: ChangeKind) -> None:
        try:
            compiled = CompiledKind(kind)
        except ChangeKindError as error:
            self.problems[kind.metadata.name] = str(error)
            return
        cache = self._cache(kind.spec, compiled.resource)
        self._trackers[compiled.name] = ChangeTracker(compiled, cache, self._announce)


def _readable(obj: Object) -> ChangeKind | None:
    """A ChangeKind without the shape of its kind is followed by nobody; its own reconcile reports it."""
    try:
        return read(ChangeKind, obj)
    except NotReadable:
        return None


class ChangeKindController(KindController[ReconcileContext[ChangeKind]]):
    """Reports whether ChangeKinds can be used.

    Conditions it owns: Ready, Reconciling and Stalled of ChangeKinds. It never changes anything else.
    """

    kind = ChangeKind
    field_manager = "hortus-rollouts"

    def __init__(
        self, wiring: Wiring[Any], kinds: KindSet, sync_time: float, *, reader: Callable[[ChangeKindSpec], str]
    ) -> None:
        """`reader` returns the account that lists the objects of a ChangeKind with this spec."""
        super().__init__(wiring)
        self._reader = reader
        self._kinds = kinds
        self._sync_time = sync_time

    def steps(self, context: ReconcileContext[ChangeKind]) -> Steps:
        return (self._report,)

    async def _report(self, context: ReconcileContext[ChangeKind]) -> None:
        if problem := self._kinds.problems.get(context.key.name):
            raise StepError(problem, reason="InvalidExpression", actor=Actor.USER, after=NEVER)
        tracker = self._kinds.get(context.key.name)
        try:
            await within(context.wiring.clock, self._sync_time, tracker.cache.synced())
        except TimeoutError as error:
            resource = tracker.kind.resource
            raise StepError(
                f"{resource.plural} of {resource.api_version} cannot be listed: is the kind served, and may "
                f"{self._reader(context.object.spec)} list and watch it?",
                reason="NotListed",
                actor=Actor.OPERATOR,
                after=self._sync_time,
            ) from error
        context.set_status("observedGeneration", context.object.metadata.generation)
        if tracker.problems:
            few = "; ".join(sorted(tracker.problems.values())[:MAX_PROBLEMS])
            context.ready("SomeObjectsFail", f"{len(tracker.problems)} objects take part in no rollout: {few}")
        else:
            context.ready("Compiled", "The expressions compile, and the objects are followed.")
