"""The one shape of a controller: a typed object in, a literal list of steps, one status write.

    class Greeter(KindController[ReconcileContext[Greeting]]):
        kind = Greeting
        owns = (CONFIG_MAPS,)

        def steps(self, context: ReconcileContext[Greeting]) -> Steps:
            return (self._check, self._provide)

Steps run in order. Each returns None to go on, or a `Result` that ends the reconcile, or raises `StepError`. What a
StepError becomes is decided here and nowhere else: `report` drafts it into the status, the status is written, its
events are recorded, and the queue tries again as the error says. `on_error` makes StepErrors of errors of servers;
other exceptions leave the status as it is. A reconcile whose object is changed meanwhile ends at its next write of the
object and begins again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar

from hortus.engine.cache import Transform
from hortus.engine.context import ReconcileContext, Superseded, Wiring
from hortus.engine.controller import Controller
from hortus.engine.events import EventRecorder
from hortus.engine.indexes import managed_fields_of, without_managed_fields
from hortus.engine.manager import Manager
from hortus.engine.outcomes import NEVER, Actor, Result, StepError
from hortus.engine.predicates import spec_or_metadata_changed
from hortus.engine.rbac import Permission
from hortus.engine.sources import Source, Watch
from hortus.engine.typed import NotReadable, resource_of
from hortus.kube import Client
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.schema import Kind

C = TypeVar("C", bound=ReconcileContext[Any])

Step = Callable[[C], Awaitable[Result | None]]
Steps = Iterable[Callable[[Any], Awaitable[Result | None]]]


class KindController(Generic[C]):
    """Reconciles the objects of one kind."""

    kind: ClassVar[type[Kind]]
    owns: ClassVar[tuple[Resource, ...]] = ()
    """Kinds of objects that it makes; a change of one reconciles its owner."""
    field_manager: ClassVar[str] = "hortus"
    applies_status: ClassVar[bool] = False
    """True where a contract wants the status written by server-side apply, not by a patch."""
    permissions: ClassVar[tuple[Permission, ...]] = ()
    """Requests of its steps beyond those that follow from its class; see `hortus.engine.manifests`."""

    def __init__(self, wiring: Wiring[Any]) -> None:
        self.wiring = wiring

    # To be written by each controller.

    def steps(self, context: C) -> Steps:
        """The steps of an object that is wanted."""
        raise NotImplementedError

    def finalize_steps(self, context: C) -> Steps:
        """The steps of an object that is being deleted; none unless the controller holds a finalizer."""
        return ()

    def sources(self, manager: Manager) -> Sequence[Source]:
        """Further sources, such as a `Watch` of objects that its own objects name; called once, by `add_kind`."""
        return ()

    def context(self, key: ObjectKey) -> C | None:
        """The context of a reconcile; None when the object is gone."""
        raw = self.wiring.cache.raw.get(key)
        return None if raw is None else self.make_context(raw)

    def make_context(self, raw: Object) -> C:
        """A context of one's own, where steps share more than the object."""
        context: Any = ReconcileContext(self.wiring, raw)
        return context  # type: ignore[no-any-return]

    async def gone(self, key: ObjectKey) -> Result | None:
        """The object is no longer there: drop what is remembered of it."""
        return None

    async def on_error(self, context: C, error: StepError | KubeError) -> StepError | None:
        """The failure to report for an error; None leaves the status as it is and the next attempt to the queue.

        A controller gives the errors of servers a reason here, and takes back what a failed object must not keep. An
        object without the shape of its kind arrives as a StepError: InvalidObject for the controller's own object,
        InvalidDependency for any other.
        """
        return error if isinstance(error, StepError) else None

    def report(self, context: C, error: StepError) -> None:
        """Draft a failure: Stalled when only a change helps, otherwise Reconciling."""
        if error.is_final:
            context.stalled(error.reason, error.message)
        else:
            context.reconciling(error.reason, error.message)

    def outcome(self, context: C, error: StepError) -> Result | None:
        """The result of a reported failure for the queue: the failure, unless a contract counts it as a success."""
        raise error

    def observe(self, context: C) -> None:
        """Set the metrics of the object after its reconcile, however that ended.

        Metrics of single objects are dropped by `Manager.on_handover` when another replica becomes their owner.
        """

    # The shape.

    async def reconcile(self, key: ObjectKey) -> Result | None:
        context = self.context(key)
        if context is None:
            return await self.gone(key)
        try:
            return await self._run(context)
        except Superseded:
            # The change is in the queue already; a key is held once.
            return Result(requeue_after=0.0)
        finally:
            if self.wiring.holds(key):  # otherwise its new owner observes it
                self.observe(context)

    async def _run(self, context: C) -> Result | None:
        try:
            result = await self._walk(context)
        except (StepError, KubeError, NotReadable) as error:
            failure = _misshapen(context, error) if isinstance(error, NotReadable) else error
            reported = await self.on_error(context, failure)
            if reported is None:
                raise
            if reported is not error:
                reported.__cause__ = error
            self.report(context, reported)
            await context.checkpoint()
            return self.outcome(context, reported)
        await context.checkpoint()
        return result

    async def _walk(self, context: C) -> Result | None:
        for step in self.finalize_steps(context) if context.is_deleting else self.steps(context):
            result = await step(context)
            if result is not None:
                return result
        return None


def _misshapen(context: ReconcileContext[Any], error: NotReadable) -> StepError:
    """The failure for an object that cannot be read. The controller's own rests until it changes; a change of any other
    may go unseen, so the reconcile is tried again with back-off."""
    try:
        context.object  # noqa: B018 - reading it is the question
    except NotReadable:
        return StepError(str(error), reason="InvalidObject", actor=Actor.USER, after=NEVER)
    return StepError(str(error), reason="InvalidDependency", actor=Actor.USER)


def wire(
    manager: Manager,
    controller: type[KindController[Any]],
    *,
    client: Client,
    events: EventRecorder,
    namespace: str = "",
    labels: str = "",
) -> Wiring[Any]:
    """Make the clients and caches of a controller: a cache of its kind, and one for each kind that it owns.

    `labels` selects the objects of its kind that concern it. An owned kind's cache keeps the controller's own
    managedFields, by which an apply that changes nothing is seen to.
    """
    keep = _ownership(controller.field_manager)
    return Wiring(
        kind=controller.kind,
        client=client,
        cache=manager.cache(
            resource_of(controller.kind), namespace=namespace, labels=labels, transform=without_managed_fields
        ),
        owned={owned: manager.cache(owned, namespace=namespace, transform=keep) for owned in controller.owns},
        events=events,
        field_manager=controller.field_manager,
        clock=manager.clock,
        holds=manager.holds,
        applies_status=controller.applies_status,
    )


@lru_cache
def _ownership(field_manager: str) -> Transform:
    """The same function for the same manager: caches are shared by their transform."""
    return managed_fields_of(field_manager)


def add_kind(
    manager: Manager,
    controller: type[KindController[Any]],
    *,
    client: Client,
    events: EventRecorder,
    namespace: str = "",
    workers: int = 10,
) -> Controller:
    """Run a controller that needs nothing but its wiring: its kind, the kinds that it owns, its further sources."""
    wiring = wire(manager, controller, client=client, events=events, namespace=namespace)
    made = controller(wiring)
    return manager.controller(
        controller.kind.FACTS.singular,
        made,
        # The first reconcile of an object has to see all others, so their sources come first.
        sources=[*made.sources(manager), *sources_of(wiring)],
        workers=workers,
    )


def sources_of(wiring: Wiring[Any]) -> list[Source]:
    """Changes of the owned kinds, which are complete before the first reconcile, and of the kind itself.

    An object whose name was refused to an owner (ObjectTaken) reconciles that owner when it changes.
    """
    owned = [Watch(cache, to=wiring.owning.to_owners(resource)) for resource, cache in wiring.owned.items()]
    return [*owned, Watch(wiring.cache.raw, when=spec_or_metadata_changed)]
