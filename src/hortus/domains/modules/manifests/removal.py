"""The steps of a Manifest that is deleted, and of one that is handed to its user (docs/modules/manifests.md)."""

from __future__ import annotations

from typing import Final

import structlog

from hortus.domains.modules.clusters import ModuleClusters
from hortus.domains.modules.manifests.context import DELETION, ManifestContext, ManifestError
from hortus.domains.modules.manifests.debts import debt_of
from hortus.domains.modules.manifests.installing import Installing, check, resource_kind
from hortus.domains.modules.manifests.rendering import ObjectId, id_of
from hortus.domains.modules.names import CustomResourcePolicy, Finalizer, Label, State
from hortus.domains.modules.settings import ManifestSettings
from hortus.engine import Actor, Result, StepError, metadata_of
from hortus.engine.applysets import UnknownKind
from hortus.engine.events import WARNING
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.leftovers.types import LeftoverReason
from hortus.kube.errors import NotFound, NotServed
from hortus.kube.objects import GroupVersionKind, Object, Resource, key_of, parse_time

OWN: Final = (Finalizer.CUSTOM_RESOURCE, Finalizer.MANIFEST, Finalizer.LABEL_REMOVAL)
"""The finalizers of this controller, in the order in which they are removed."""
_SHOWN: Final = 10
"""Objects that one message names."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ModuleRemoval:
    """Removes modules."""

    def __init__(
        self, installing: Installing, clusters: ModuleClusters, leftovers: LeftoverRecorder, settings: ManifestSettings
    ) -> None:
        self._installing = installing
        self._clusters = clusters
        self._leftovers = leftovers
        self._settings = settings

    # Steps of a deletion, in their order.

    async def await_users(self, context: ManifestContext) -> None:
        """Raises ManifestError while the cluster has custom resources of the module that its users made."""
        context.phase = "manifest_pre_delete"
        resource = context.spec.resource
        if resource is None or (kind := await resource_kind(context, resource)) is None:
            return
        own = None
        if context.spec.custom_resource_policy == CustomResourcePolicy.CREATE_AND_DELETE:
            own = _place(resource, kind)
        found = await _resources(context, kind, resource)
        blocking = sorted(place for obj in found if (place := _place(obj, kind)) != own)
        if not blocking:
            return
        context.phase = "manifest_pre_delete_enqueue_required"
        names = ", ".join(blocking[:_SHOWN]) + (f" and {len(blocking) - _SHOWN} more" if len(blocking) > _SHOWN else "")
        message = f"the cluster's owner has to delete {kind.kind} {names}: the module is in use as long as they exist"
        context.condition(DELETION, "False", reason="UserResourcesLeft", message=message)
        raise ManifestError(
            message,
            state=State.DELETING,
            operation="waiting for module crs deletion",
            reason="UserResourcesLeft",
            actor=Actor.USER,
            after=self._settings.requeue.busy,
        )

    async def delete_resource(self, context: ManifestContext) -> Result | None:
        """Deletes the default module CR, with the module in place so that its operator can finish."""
        resource = context.resource
        if resource is None or (kind := await resource_kind(context, resource)) is None:
            return None
        metadata = key_of(resource)
        namespace = metadata.namespace if kind.namespaced else ""
        try:
            live = await context.client.get(kind, metadata.name, namespace)
        except NotFound:
            return None
        context.phase = "manifest_pre_delete_enqueue_required"
        context.report(State.DELETING, "waiting for module crs deletion")
        await self._keep_module(context)
        found = metadata_of(live)
        if found.deletion_timestamp is None:
            await context.client.delete(kind, found.name, namespace, uid=found.uid)
        return Result(requeue_after=self._settings.requeue.busy)

    async def _keep_module(self, context: ManifestContext) -> None:
        """A module whose layer cannot be read any more is deleted all the same, from its inventory."""
        try:
            await self._installing.render(context)
            await self._installing.apply(context)
        except StepError as error:
            _log.warning("a module is removed as it is", manifest=str(context.key), error=error.message)

    async def delete_objects(self, context: ManifestContext) -> Result | None:
        context.phase = "manifest_prune_diff"
        report = await self._installing.delete(context)
        check(report, "ObjectNotDeleted")
        if report.complete:
            return None
        context.phase = "manifest_prune_diff_not_finished"
        context.condition(DELETION, "False", reason="ObjectsLeft", message=report.message())
        context.report(State.DELETING, "waiting for the deletion of module resources")
        return Result(requeue_after=self._settings.requeue.busy)

    async def release(self, context: ManifestContext) -> Result | None:
        """Removes our finalizers; with the last one the Manifest is gone."""
        foreign = [name for name in context.object.metadata.finalizers if name not in OWN]
        if foreign:
            context.report(State.DELETING, f"waiting as other finalizers are present: {', '.join(foreign)}")
            await context.checkpoint()
        for finalizer in OWN:
            await context.remove_finalizer(finalizer)
        return Result() if not foreign else Result(requeue_after=self._settings.requeue.busy)

    # A cluster that is gone or silent.

    async def detach(self, context: ManifestContext, reason: str, problem: str) -> Result | None:
        """Releases a Manifest without its cluster, with a record of the objects that may be left there."""
        member = self._clusters.identity(context.place)
        await self._leftovers.record(debt_of(context, member, reason=reason, message=problem))
        left = ", ".join(f"{one.kind} {one.name}" for one in context.synced[:_SHOWN])
        if context.synced:
            text = f"Released without its cluster: {problem}. Objects that may be left there: {left}"
            context.event(WARNING, "Detached", text[-100:])
            _log.warning("a manifest was released without its cluster", manifest=str(context.key), problem=problem)
        return await self.release(context)

    async def detach_silent(self, context: ManifestContext, problem: str) -> bool:
        """The same for a cluster that has not answered for long enough; returns whether it has not."""
        state = self._clusters.state(context.place)
        began = max(parse_time(context.object.metadata.deletion_timestamp or ""), state.since)
        if state.usable or context.now - began < self._settings.detach_after:
            return False
        await self.detach(context, LeftoverReason.CLUSTER_UNREACHABLE, problem)
        return True

    async def detach_refused(self, context: ManifestContext, problem: str) -> bool:
        """The same for a cluster that has refused requests for long enough; returns whether it has."""
        if context.now - parse_time(context.object.metadata.deletion_timestamp or "") < self._settings.detach_after:
            return False
        await self.detach(context, LeftoverReason.NOT_PRUNED, problem)
        return True

    # Handing a module to its user.

    async def hand_over(self, context: ManifestContext) -> Result:
        """Takes our label off the objects and deletes the Manifest, which leaves them as they are."""
        context.phase = "manifest_labels_removal"
        if Finalizer.LABEL_REMOVAL in context.object.metadata.finalizers:
            for one in context.synced:
                identity = ObjectId(one.namespace, one.name, one.group, one.version, one.kind)
                await self._unlabel(context, identity)
            await context.remove_finalizer(Finalizer.LABEL_REMOVAL)
        context.phase = "manifest_unmanaged_update"
        metadata = context.object.metadata
        await context.wiring.client.delete(context.wiring.resource, metadata.name, metadata.namespace, uid=metadata.uid)
        return Result()

    async def _unlabel(self, context: ManifestContext, one: ObjectId) -> None:
        try:
            resource = await context.kinds.resource(GroupVersionKind(one.group, one.version, one.kind))
            await context.client.patch(
                resource, one.name, {"metadata": {"labels": {Label.MANAGED_BY: None}}}, one.namespace
            )
        except (NotFound, UnknownKind):
            return


async def _resources(context: ManifestContext, kind: Resource, resource: Object) -> list[Object]:
    """All resources of the module's kind; none when it is served no more, as after its definition was deleted.

    What is known of the cluster may be older than that.
    """
    try:
        return (await context.client.list(kind, metadata_only=True)).items
    except NotServed:
        if await resource_kind(context, resource, known=False) is not None:
            raise
        return []


def _place(obj: Object, kind: Resource) -> str:
    found = id_of(obj)
    return f"{found.namespace}/{found.name}" if kind.namespaced else found.name
