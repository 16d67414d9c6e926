"""The ClusterStackRelease controller: the files of a release, its part at the provider, its ClusterClass and templates.

Conditions it owns: all of ClusterStackReleases. Objects it owns: those of the chart, by status.resources and the label
clusterstack.x-k8s.io/instance.
It watches: ClusterStackReleases, their objects, the objects of providers, Clusters.
It never: deletes objects of a release that a Cluster uses, applies any before all pass a dry run, or calls the source
of releases for one whose files are on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from hortus.domains.stacks.capi import read_cluster
from hortus.domains.stacks.catalog.classes import ClassInvalid, ClassObjects, check_class, refused, unfinished
from hortus.domains.stacks.catalog.controllers import CatalogController, CatalogParts
from hortus.domains.stacks.catalog.debts import debt_of
from hortus.domains.stacks.catalog.providers import ProviderError, is_ready, resource_of
from hortus.domains.stacks.catalog.reasons import (
    APPLY_AGAIN,
    CLIENT_AGAIN,
    IN_USE_AGAIN,
    CatalogCondition,
    CatalogEvent,
    CatalogReason,
)
from hortus.domains.stacks.catalog.watches import ObjectWatches
from hortus.domains.stacks.clusters import release_of, users_of
from hortus.domains.stacks.conditions import Severity
from hortus.domains.stacks.context import ConditionError, StackContext
from hortus.domains.stacks.inventory import ResourceInventory
from hortus.domains.stacks.names import RELEASE_FINALIZER, BadName, ReleaseName, parse_tag
from hortus.domains.stacks.releases import (
    BadRelease,
    ReleaseError,
    ReleaseMissing,
    SourceUnusable,
    StackRelease,
)
from hortus.domains.stacks.types import ClusterStackRelease, ManagedResource
from hortus.engine import NEVER, Actor, Manager, NotReadable, Result, Steps, Wiring
from hortus.engine.applysets import ApplyReport, InventoryEntry, Kinds, Member, ObjectOutcome, WatchedLive
from hortus.engine.finalizers import has_finalizer
from hortus.engine.owners import owner_reference
from hortus.engine.typed import metadata_of
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.schema import OwnerReference

_WAITING: Final = Result()


class ReleaseContext(StackContext[ClusterStackRelease]):
    """One reconcile of one ClusterStackRelease."""

    name: ReleaseName
    release: StackRelease
    """Its files."""


class ClusterStackReleaseController(CatalogController[ReleaseContext]):
    """Reconciles one ClusterStackRelease at a time."""

    kind = ClusterStackRelease
    field_manager = "hortus"

    def __init__(
        self,
        wiring: Wiring[Any],
        parts: CatalogParts,
        *,
        manager: Manager,
        classes: ClassObjects,
        kinds: Kinds,
        live: WatchedLive,
        namespace: str,
        watches: ObjectWatches,
    ) -> None:
        super().__init__(wiring, parts)
        self._manager = manager
        self._classes = classes
        self._kinds = kinds
        self._live = live
        self._namespace = namespace
        self._watches = watches

    def make_context(self, raw: Object) -> ReleaseContext:
        return ReleaseContext(self.wiring, raw)

    def steps(self, context: ReleaseContext) -> Steps:
        return (self._skip, self._parse, self._hold, self._provide_files, self._await_provider, self._apply)

    def finalize_steps(self, context: ReleaseContext) -> Steps:
        return (self._skip, self._await_users, self._remove)

    # Steps.

    async def _parse(self, context: ReleaseContext) -> None:
        try:
            context.name = parse_tag(context.key.name)
        except BadName as error:
            raise _bad_files(BadRelease(str(error)), final=True) from error

    async def _hold(self, context: ReleaseContext) -> None:
        await context.ensure_finalizer(RELEASE_FINALIZER)

    async def _provide_files(self, context: ReleaseContext) -> None:
        try:
            context.release = await self._library.get(context.name)
        except ReleaseMissing:
            await self._download(context)
        except BadRelease as error:
            raise _bad_files(error) from error
        try:
            context.release.check_charts()
        except BadRelease as error:
            raise _bad_files(error, event=CatalogEvent.CHART_INVALID, final=True) from error
        context.true(CatalogCondition.DOWNLOADED)
        context.set_status("kubernetesVersion", context.release.versions.kubernetes)

    async def _download(self, context: ReleaseContext) -> None:
        """Fetch the files; that they are missing is shown meanwhile."""
        if not context.is_false(CatalogCondition.DOWNLOADED):
            context.false(
                CatalogCondition.DOWNLOADED,
                CatalogReason.NOT_DOWNLOADED,
                Severity.INFO,
                f"release {context.name.tag} is being downloaded",
            )
            await context.checkpoint()
        try:
            context.release = await self._library.fetch(context.name)
        except SourceUnusable as error:
            raise ConditionError(
                str(error),
                condition=CatalogCondition.ASSETS_CLIENT,
                reason=CatalogReason.CLIENT_FAILED,
                severity=Severity.ERROR,
                actor=Actor.OPERATOR,
                after=CLIENT_AGAIN,
                event=CatalogReason.CLIENT_FAILED,
            ) from error
        except BadRelease as error:
            context.true(CatalogCondition.ASSETS_CLIENT)
            raise _bad_files(error) from error
        except ReleaseError as error:
            context.true(CatalogCondition.ASSETS_CLIENT)
            raise ConditionError(
                str(error),
                condition=CatalogCondition.DOWNLOADED,
                reason=CatalogReason.NOT_DOWNLOADED,
                severity=Severity.INFO,
                actor=Actor.PROVIDER,
                after=getattr(error, "retry_after", None),
            ) from error
        context.true(CatalogCondition.ASSETS_CLIENT)

    async def _await_provider(self, context: ReleaseContext) -> Result | None:
        reference = context.object.spec.provider_ref
        if reference is not None:
            title = f"{reference.kind} {context.key.namespace}/{reference.name}"
            try:
                resource = await resource_of(reference, self._kinds)
                cache = self._manager.cache(resource, namespace=self._namespace)
                self._watches.follow_providers(cache)
                found = await self.wiring.client.get(resource, reference.name, context.key.namespace)
            except (ProviderError, NotFound) as error:
                raise ConditionError(
                    f"{title}: {error}",
                    condition=CatalogCondition.PROVIDER_READY,
                    reason=CatalogReason.PROVIDER_ONGOING,
                    severity=Severity.INFO,
                    actor=Actor.PROVIDER,
                    after=APPLY_AGAIN,
                ) from error
            await self._adopt(context, resource, found)
            if not is_ready(found):
                context.false(
                    CatalogCondition.PROVIDER_READY,
                    CatalogReason.PROVIDER_ONGOING,
                    Severity.INFO,
                    f"{title} is not ready",
                )
                return _WAITING
        context.true(CatalogCondition.PROVIDER_READY)
        return None

    async def _adopt(self, context: ReleaseContext, resource: Resource, found: Object) -> None:
        """Make the release the controller of its provider's object, which is deleted with it then.

        ClusterStacks name that object as the release; an object of another name is somebody's.
        """
        metadata = metadata_of(found)
        owners = metadata.owner_references
        if metadata.name != context.key.name or any(owner.controller for owner in owners):
            return
        mine = msgspec.convert(owner_reference(context.raw), OwnerReference)
        references = [*(owner for owner in owners if owner.uid != mine.uid), mine]
        head = {"ownerReferences": msgspec.to_builtins(references), "resourceVersion": metadata.resource_version}
        await self.wiring.client.patch(resource, metadata.name, {"metadata": head}, context.key.namespace)

    async def _apply(self, context: ReleaseContext) -> Result | None:
        inventory = self._inventory(context)
        try:
            objects = await self._classes.render(context.release, context.key.namespace)
            if not context.object.status.ready:
                check_class(objects, context.name)
        except ClassInvalid as error:
            raise _not_applied(str(error)) from error
        except ReleaseMissing:
            return Result(requeue_after=0.0)  # a file was damaged: the next reconcile downloads the release
        except ReleaseError as error:
            raise _not_applied(str(error), after=APPLY_AGAIN) from error
        if not context.object.status.ready:
            report = await self._classes.try_out(objects, inventory)
            if unfinished(report):
                reason = CatalogReason.NOT_PERMITTED if self._refused(context, report) else CatalogReason.APPLY_FAILED
                text = f"the dry run of its objects fails: {report.message()}"
                raise _not_applied(text, reason=reason, after=APPLY_AGAIN)
        report = await self._classes.apply(objects, inventory)
        self._follow(inventory)
        _draft_resources(context, inventory)
        if unfinished(report):
            raise ConditionError(
                report.message(),
                condition=CatalogCondition.CHART_APPLIED,
                reason=CatalogReason.NOT_PERMITTED if self._refused(context, report) else CatalogReason.APPLY_ONGOING,
                severity=Severity.WARNING,
                actor=Actor.PROVIDER,
                after=APPLY_AGAIN,
            )
        context.true(CatalogCondition.CHART_APPLIED)
        context.set_status("ready", True)
        return None

    async def _await_users(self, context: ReleaseContext) -> Result | None:
        """Keeps a release that a Cluster uses."""
        if not has_finalizer(context.raw, RELEASE_FINALIZER):
            return _WAITING
        try:
            context.name = parse_tag(context.key.name)
        except BadName:
            return None
        if not self._clusters.has_synced:
            return Result(requeue_after=IN_USE_AGAIN)
        users = users_of(self._clusters, context.key.namespace, context.name)
        return Result(requeue_after=IN_USE_AGAIN) if users else None

    async def _remove(self, context: ReleaseContext) -> Result | None:
        """Delete what the status lists, with no need of the release's files."""
        inventory = self._inventory(context)
        left: dict[Member, InventoryEntry] = {}
        texts: list[str] = []
        report = await self._classes.delete(inventory)
        while problems := self._refused(context, report):
            # An object that the namespace may not delete stays, and holds up no other.
            known = await inventory.load()
            members = {problem.member for problem in problems}
            left |= {member: known[member] for member in members}
            texts += [problem.message for problem in problems]
            await inventory.store({member: entry for member, entry in known.items() if member not in members})
            report = await self._classes.delete(inventory)
        if not left:
            _draft_resources(context, inventory)
        if not report.complete:
            return Result(requeue_after=APPLY_AGAIN)
        if left:
            await self._leftovers.record(debt_of(context.raw, left, "; ".join(texts)))
            context.warn(CatalogReason.NOT_PERMITTED, f"left behind: {'; '.join(texts)}")
        await context.remove_finalizer(RELEASE_FINALIZER)
        return None

    # Parts.

    def _refused(self, context: ReleaseContext, report: ApplyReport) -> list[ObjectOutcome]:
        """The outcomes of objects that the namespace may not write."""
        return [] if self._deputies.trusts(context.key.namespace) else refused(report)

    def _inventory(self, context: ReleaseContext) -> ResourceInventory:
        async def save(listed: Sequence[ManagedResource]) -> None:
            context.set_status("resources", [msgspec.to_builtins(one) for one in listed])
            await context.checkpoint()

        return ResourceInventory(
            context.object.status.resources, namespace=context.key.namespace, kinds=self._kinds, save=save
        )

    def _follow(self, inventory: ResourceInventory) -> None:
        for resource in inventory.resources:
            self._watches.follow_members(resource, self._live.cache(resource))


def to_users(cluster: Object) -> Sequence[ObjectKey]:
    """Maps a Cluster to the ClusterStackRelease that it uses or used."""
    try:
        found = read_cluster(cluster)
    except NotReadable:
        return []
    name = release_of(found)
    return [ObjectKey(found.class_namespace, name.tag)] if name is not None else []


def _draft_resources(context: ReleaseContext, inventory: ResourceInventory) -> None:
    context.set_status("resources", [msgspec.to_builtins(one) for one in inventory.listed] or None)


def _not_applied(
    message: str, *, reason: CatalogReason = CatalogReason.APPLY_FAILED, after: float | None = None
) -> ConditionError:
    return ConditionError(
        message,
        condition=CatalogCondition.CHART_APPLIED,
        reason=reason,
        severity=Severity.ERROR,
        actor=Actor.OPERATOR,
        after=after,
    )


def _bad_files(error: ReleaseError, *, event: str = "", final: bool = False) -> ConditionError:
    return ConditionError(
        str(error),
        condition=CatalogCondition.DOWNLOADED,
        reason=CatalogReason.BAD_ASSETS,
        severity=Severity.ERROR,
        actor=Actor.OPERATOR,
        after=NEVER if final else None,
        event=event,
    )


__all__ = ["ClusterStackReleaseController", "to_users"]
