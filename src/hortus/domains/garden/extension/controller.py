"""The controller of the Extensions of one type, which carries out the operations that gardenlet asks for.

Owns: the status of Extensions of its type, their finalizer, and the topic's ManagedResources with their Secrets. It
writes lastOperation, lastError, the condition of the health and those of the topic. Watches: Extensions, Clusters,
ManagedResources, and the topic's own sources. Never: touches the spec of an Extension, an Extension of another type, or
one that was moved to another seed. A Shoot that gardenlet itself leaves alone (Failed, ignored) gets no operation but
deletion: an Extension that is being deleted does not come back, and its finalizer would hold the namespace. An
Extension of a namespace that is not trusted gets none that its deputy could not have gardener-resource-manager do.

An operation is reported as Processing before the annotation that asks for it is removed, so that a controller killed in
between begins it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

import msgspec

from hortus.domains.garden.extension import lifecycle, progress
from hortus.domains.garden.extension.context import ExtensionContext
from hortus.domains.garden.extension.health import health
from hortus.domains.garden.extension.lifecycle import DELETE, MIGRATE, PROCESSING, RECONCILE_WORD, SUCCEEDED
from hortus.domains.garden.extension.managed import ManagedObjects
from hortus.domains.garden.extension.topic import ConfigReview, ExtensionTopic, PendingWork, TopicCondition
from hortus.domains.garden.kinds.common import GardenCondition, GardenOperation
from hortus.domains.garden.kinds.extension import GardenExtension, GardenExtensionStatus
from hortus.domains.garden.kinds.managedresource import MANAGED_RESOURCES
from hortus.domains.garden.kinds.seedcluster import SeedCluster
from hortus.engine import (
    NEVER,
    Actor,
    KindController,
    NotReadable,
    Result,
    StepError,
    Steps,
    TypedCache,
    Wiring,
    has_finalizer,
)
from hortus.engine.deputies import Action, Deputies
from hortus.kube.errors import ApiError, Conflict, KubeError
from hortus.kube.objects import Object

FIELD_MANAGER: Final = "hortus-garden-extensions"
REMOVAL_TIME: Final = 120.0
"""Seconds that ManagedResources may take to go until it is reported as an error."""


class GardenExtensionController(KindController[ExtensionContext]):
    """Reconciles the Extensions of one type; see the module's head."""

    kind = GardenExtension
    field_manager: ClassVar[str] = FIELD_MANAGER

    def __init__(
        self,
        wiring: Wiring[GardenExtension],
        topic: ExtensionTopic,
        *,
        clusters: TypedCache[SeedCluster],
        managed: ManagedObjects,
        deputies: Deputies,
    ) -> None:
        super().__init__(wiring)
        self.topic = topic
        self._clusters = clusters
        self._managed = managed
        self._deputies = deputies

    def make_context(self, raw: Object) -> ExtensionContext:
        return ExtensionContext(self.wiring, raw, facts=self.topic.facts, clusters=self._clusters)

    def steps(self, context: ExtensionContext) -> Steps:
        return (self._choose, self._begin, self._migrate, self._check, self._apply, self._succeed, self._observe)

    def finalize_steps(self, context: ExtensionContext) -> Steps:
        return (self._begin_deletion, self._remove, self._release)

    # An Extension that is wanted.

    async def _choose(self, context: ExtensionContext) -> Result | None:
        """Decide on the operation; a Shoot that gardenlet leaves alone gets none."""
        if lifecycle.is_paused(context.shoot):
            return Result()
        moved = lifecycle.is_migrated(context.object)
        context.dependencies = "" if moved else _digest(self.topic.dependencies(context), context)
        wanted = context.notes.managed_resources
        present = frozenset(one.metadata.name for one in self._managed.found(context.namespace, wanted))
        drifted = not moved and await self.topic.has_drifted(context)
        due = lifecycle.due_operation(
            context.object, dependencies=context.dependencies, present=present, drifted=drifted
        )
        context.operation = due or ""
        if due is not None:
            creation = Action("create", MANAGED_RESOURCES.group, MANAGED_RESOURCES.plural, context.namespace)
            await self._deputies.require(context.namespace, creation)
        return Result() if due is None and moved else None

    async def _begin(self, context: ExtensionContext) -> None:
        """Report the operation, then take off the annotation that asked for it."""
        if not context.operation:
            return
        last = context.object.status.last_operation
        if context.operation != MIGRATE:
            await context.ensure_finalizer(context.facts.finalizer)
        elif last is not None and last.type == MIGRATE and last.state != SUCCEEDED:
            return  # it goes on, and its time counts from its begin
        if not lifecycle.goes_on(context.object, context.operation):
            _report(context, PROCESSING, 0, f"{context.operation} of extension {context.facts.type} is in progress")
            await context.checkpoint()
        if context.object.metadata.annotations.get(lifecycle.OPERATION) == RECONCILE_WORD:
            await _take_off(context)

    async def _migrate(self, context: ExtensionContext) -> Result | None:
        """Leave the seed: objects of the Shoot stay, those of the seed are deleted, and nothing holds the Extension."""
        if context.operation != MIGRATE:
            return None
        pending = await self._remove(context)
        if pending is not None:
            return pending
        context.set_status("providerStatus", None)
        context.set_status("lastError", None)
        context.set_status("observedGeneration", context.object.metadata.generation)
        _report(context, SUCCEEDED, 100, f"{MIGRATE} of extension {context.facts.type} succeeded")
        await context.checkpoint()
        await context.remove_finalizer(context.facts.finalizer)
        await _take_off(context)
        return Result()

    async def _check(self, context: ExtensionContext) -> None:
        """Refuse a configuration that admission would refuse: the Shoot may be older than the admission."""
        if not context.operation:
            return
        review = ConfigReview(config=context.config, shoot=context.shoot, path="spec.providerConfig")
        errors = self.topic.review(review).errors
        if errors:
            raise StepError("; ".join(map(str, errors)), reason="ConfigurationProblem", actor=Actor.USER, after=NEVER)

    async def _apply(self, context: ExtensionContext) -> Result | None:
        """Hand the objects of the topic to gardener-resource-manager, or wait for a stage of it."""
        if not context.operation:
            return None
        context.rendered = rendered = await self.topic.render(context)
        if rendered is None:
            _note(context, context.notes.managed_resources, _reported(context))
            return None
        if rendered.pending is not None:
            return self._await(context, rendered.pending)
        facts, left = context.facts, []
        parts = ((facts.shoot_resource, rendered.shoot, False), (facts.seed_resource, rendered.seed, True))
        for name, objects, for_seed in parts:
            if not name:
                continue
            if objects:
                await self._managed.apply(context.namespace, name, objects, for_seed=for_seed)
                left.append(name)
            else:
                await self._managed.remove(context.namespace, name, keep_objects=False)
        _note(context, tuple(left), rendered.provider_status)
        context.set_status("state", rendered.state)
        return None

    def _await(self, context: ExtensionContext, pending: PendingWork) -> Result:
        """Report the stage; the time that it may take counts from the first report of it."""
        last = context.object.status.last_operation
        _report(context, PROCESSING, pending.progress, pending.description)
        same = last is not None and last.state == PROCESSING and last.description == pending.description
        began = last.changed_at(context.now) if last is not None and same else context.now
        left = began + pending.patience - context.now
        if left <= 0:
            late = f"{pending.description}: not done after {pending.patience:g} s"
            raise StepError(
                f"{late}: {pending.problem}" if pending.problem else late, reason="StageTimedOut", actor=Actor.PROVIDER
            )
        self._write_conditions(context, context.object.status.conditions)
        return Result(requeue_after=left)

    async def _succeed(self, context: ExtensionContext) -> None:
        if not context.operation:
            return
        context.set_status("lastError", None)
        context.set_status("observedGeneration", context.object.metadata.generation)
        _report(context, SUCCEEDED, 100, f"{context.operation} of extension {context.facts.type} succeeded")
        if lifecycle.OPERATION in context.object.metadata.annotations:
            await context.checkpoint()
            await _take_off(context)

    async def _observe(self, context: ExtensionContext) -> None:
        """Report the health of what the last operation left."""
        wanted = context.notes.managed_resources if context.left is None else context.left
        found = self._managed.found(context.namespace, wanted)
        former = [one for one in context.object.status.conditions if one.type != context.facts.health_condition]
        self._write_conditions(context, former, health(context.facts, wanted, found))

    def _write_conditions(
        self, context: ExtensionContext, former: Iterable[GardenCondition], *reported: TopicCondition
    ) -> None:
        """Write conditions: `reported`, those of what was rendered, else `former`, and in their place what is seen."""
        rendered = context.rendered
        kept = (TopicCondition(one.type, one.status, one.reason, one.message) for one in former)
        done = rendered is not None and rendered.pending is None
        seen = (*reported, *(() if done else kept), *(rendered.conditions if rendered is not None else ()))
        # A problem of the objects is reported before one that the topic has seen under the same type.
        unhealthy = {one.type for one in reported if one.status != "True"}
        observed = (one for one in self.topic.observed(context) if one.type not in unhealthy)
        found = {one.type: one for one in (*seen, *observed)}
        known = context.object.status.conditions
        context.set_status("conditions", progress.conditions(known, list(found.values()), now=context.now))

    # An Extension that is deleted.

    async def _begin_deletion(self, context: ExtensionContext) -> Result | None:
        if not has_finalizer(context.raw, context.facts.finalizer):
            return Result()
        context.operation = DELETE
        last = context.object.status.last_operation
        if last is None or last.type != DELETE:
            _report(context, PROCESSING, 0, f"{DELETE} of extension {context.facts.type} is in progress")
            await context.checkpoint()
        return None

    async def _remove(self, context: ExtensionContext) -> Result | None:
        """Delete the ManagedResources one after the other; a Shoot that cannot be reached keeps its objects."""
        await self.topic.leave(context, context.operation)
        cluster = context.known_cluster
        forced = cluster is not None and lifecycle.is_force_deleted(cluster.shoot)
        keep = context.operation == MIGRATE or forced
        for name in context.facts.resources:
            of_shoot = name == context.facts.shoot_resource
            if not await self._managed.remove(context.namespace, name, keep_objects=keep and of_shoot):
                return self._wait_for(context, f"ManagedResource {name}")
        if not await self.topic.is_left(context, context.operation):
            return self._wait_for(context, f"objects of extension {context.facts.type}")
        return None

    def _wait_for(self, context: ExtensionContext, what: str) -> Result:
        last = context.object.status.last_operation
        began = context.now if last is None or last.state != PROCESSING else last.changed_at(context.now)
        left = began + REMOVAL_TIME - context.now
        if (last is not None and last.state != PROCESSING) or left <= 0:
            raise StepError(
                f"{what} in namespace {context.namespace} is still there after {REMOVAL_TIME:g} s: "
                "its conditions name the objects that are left",
                reason="RemovalPending",
                actor=Actor.PROVIDER,
            )
        return Result(requeue_after=left)

    async def _release(self, context: ExtensionContext) -> None:
        _report(context, SUCCEEDED, 100, f"{DELETE} of extension {context.facts.type} succeeded")
        await context.checkpoint()
        await context.remove_finalizer(context.facts.finalizer)

    # Failures.

    async def on_error(self, context: ExtensionContext, error: StepError | KubeError) -> StepError | None:
        if isinstance(error, StepError):
            return error
        if isinstance(error, Conflict) or not isinstance(error, ApiError):
            return None  # the next attempt reads the object, or finds the server again
        return StepError(f"the seed answers: {error}", reason="SeedRefuses", actor=Actor.OPERATOR)

    def report(self, context: ExtensionContext, error: StepError) -> None:
        status = _status(context)
        last = status.last_operation if status is not None else None
        kind = context.operation or (last.type if last is not None else lifecycle.RECONCILE)
        done = last.progress if last is not None and last.state != SUCCEEDED else 0
        context.set_status(
            "lastOperation",
            progress.operation(last, kind, lifecycle.ERROR, done, error.message, now=context.now),
        )
        former = status.last_error if status is not None else None
        context.set_status("lastError", progress.error(error, former=former, now=context.now))


def _status(context: ExtensionContext) -> GardenExtensionStatus | None:
    try:
        return context.object.status
    except NotReadable:
        return None


def _digest(dependencies: str, context: ExtensionContext) -> str:
    """A short form of the facts outside of the Extension, with the hibernation, on which all topics depend."""
    text = f"{context.shoot.is_hibernated} {dependencies}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _report(context: ExtensionContext, state: str, percent: int, description: str) -> None:
    former: GardenOperation | None = context.object.status.last_operation
    value = progress.operation(former, context.operation, state, percent, description, now=context.now)
    context.set_status("lastOperation", value)


def _note(context: ExtensionContext, left: tuple[str, ...], reported: Mapping[str, Any]) -> None:
    context.left = left
    notes = {"dependencies": context.dependencies, "managedResources": list(left)}
    context.set_status("providerStatus", {**reported, **notes})


class _RawStatus(msgspec.Struct, rename="camel"):
    provider_status: dict[str, Any] | None = None


class _RawExtension(msgspec.Struct):
    status: _RawStatus = msgspec.field(default_factory=_RawStatus)


def _reported(context: ExtensionContext) -> dict[str, Any]:
    """The provider status as the last operation left it, with fields of the topic's own."""
    return msgspec.convert(context.raw, _RawExtension).status.provider_status or {}


async def _take_off(context: ExtensionContext) -> None:
    await context.patch({"metadata": {"annotations": {lifecycle.OPERATION: None}}})
