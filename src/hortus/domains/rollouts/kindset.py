"""The ChangeKinds of a process: the controller that compiles them, and the trackers of their objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hortus.domains.rollouts.changekinds import ChangeKindError, CompiledKind
from hortus.domains.rollouts.tracking import Announce, ChangeTracker
from hortus.engine import NEVER, Actor, Cache, KindController, ReconcileContext, StepError, Steps, Wiring
from hortus.engine.rollouts.types import ChangeKind
from hortus.kube.objects import ObjectKey, Resource

MAX_PROBLEMS = 3
"""Objects on which an expression fails that a condition names."""


class KindSet:
    """The trackers of all ChangeKinds that compile, by name."""

    def __init__(self, cache: Callable[[Resource], Cache], announce: Announce) -> None:
        """`cache` gives the cache of a kind, on the management cluster."""
        self._cache = cache
        self._announce = announce
        self._trackers: dict[str, ChangeTracker] = {}

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

    def put(self, kind: ChangeKind) -> ChangeTracker:
        """Follow the objects of a ChangeKind. Raises ChangeKindError, and follows them no longer."""
        name, known = kind.metadata.name, self._trackers.get(kind.metadata.name)
        if known is not None and known.kind.generation == kind.metadata.generation:
            return known
        self.drop(name)
        compiled = CompiledKind(kind)
        made = self._trackers[name] = ChangeTracker(compiled, self._cache(compiled.resource), self._announce)
        self._announce(name, "")
        return made

    def drop(self, name: str) -> None:
        known = self._trackers.pop(name, None)
        if known is not None:
            known.detach()
            self._announce(name, "")


class ChangeKindController(KindController[ReconcileContext[ChangeKind]]):
    """Compiles ChangeKinds and reports whether they can be used.

    Conditions it owns: Ready, Reconciling and Stalled of ChangeKinds. It never changes anything else.
    """

    kind = ChangeKind
    field_manager = "hortus-rollouts"

    def __init__(self, wiring: Wiring[Any], kinds: KindSet) -> None:
        super().__init__(wiring)
        self._kinds = kinds

    def steps(self, context: ReconcileContext[ChangeKind]) -> Steps:
        return (self._compile,)

    def finalize_steps(self, context: ReconcileContext[ChangeKind]) -> Steps:
        return (self._drop,)

    async def gone(self, key: ObjectKey) -> None:
        self._kinds.drop(key.name)

    async def _compile(self, context: ReconcileContext[ChangeKind]) -> None:
        try:
            tracker = self._kinds.put(context.object)
        except ChangeKindError as error:
            raise StepError(str(error), reason="InvalidExpression", actor=Actor.USER, after=NEVER) from error
        resource = tracker.kind.resource
        if not tracker.cache.has_synced:
            raise StepError(
                f"{resource.plural} of {resource.api_version} cannot be listed yet: is the kind served, and may it be "
                "listed and watched?",
                reason="NotListed",
                actor=Actor.OPERATOR,
                after=15.0,
            )
        context.set_status("observedGeneration", context.object.metadata.generation)
        if tracker.problems:
            few = "; ".join(sorted(tracker.problems.values())[:MAX_PROBLEMS])
            context.ready("SomeObjectsFail", f"{len(tracker.problems)} objects take part in no rollout: {few}")
        else:
            context.ready("Compiled", "The expressions compile, and the objects are followed.")

    async def _drop(self, context: ReconcileContext[ChangeKind]) -> None:
        self._kinds.drop(context.key.name)
