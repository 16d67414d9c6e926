"""The ClusterStack controller: the releases that a namespace offers.

Conditions it owns: all of ClusterStacks. Objects it owns: ClusterStackReleases, by a plain owner reference, and the
provider's object of each.
It watches: ClusterStacks, ClusterStackReleases, Clusters, StackPolicies.
It never: changes a ClusterStackRelease that exists, deletes one that a Cluster uses, or deletes any while it does not
know the Clusters or the list of releases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from hortus.domains.stacks.announced import AnnouncedProblems
from hortus.domains.stacks.approval import Approvals, refusal
from hortus.domains.stacks.catalog import service
from hortus.domains.stacks.catalog.controllers import CatalogController, CatalogParts
from hortus.domains.stacks.catalog.providers import ProviderError, ProviderTemplate, clone, read_template
from hortus.domains.stacks.catalog.reasons import CLIENT_AGAIN, CatalogCondition, CatalogEvent, CatalogReason
from hortus.domains.stacks.clusters import releases_in_use
from hortus.domains.stacks.conditions import Severity
from hortus.domains.stacks.context import ConditionError, StackContext
from hortus.domains.stacks.names import BadName, ReleaseName, latest
from hortus.domains.stacks.releases import LIST_AGE, ReleaseError, SourceUnusable
from hortus.domains.stacks.types import CLUSTER_STACK_RELEASES, CLUSTER_STACKS, ClusterStack, ClusterStackRelease
from hortus.engine import NEVER, NORMAL, Actor, Cache, Result, Steps, Wiring, read
from hortus.engine.applysets import DiscoveredKinds
from hortus.engine.owners import owner_reference
from hortus.engine.typed import metadata_of
from hortus.kube.errors import AlreadyExists, KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, parse_time

_OWNER_INDEX: Final = "cluster-stack"


class ClusterStackContext(StackContext[ClusterStack]):
    """One reconcile of one ClusterStack."""

    existing: Mapping[ReleaseName, ClusterStackRelease]
    """Its ClusterStackReleases."""
    latest: ReleaseName | None = None
    """The latest release at the source; None also where the list is not known."""
    latest_ready: ReleaseName | None = None
    is_listed: bool = True
    """False where the releases at the source are not known."""
    plan: service.ReleasePlan
    again: float | None = None
    """Seconds until the next reconcile, where a failure asks for one."""


class ClusterStackController(CatalogController[ClusterStackContext]):
    """Reconciles one ClusterStack at a time."""

    kind = ClusterStack
    field_manager = "hortus"

    def __init__(
        self,
        wiring: Wiring[Any],
        parts: CatalogParts,
        *,
        releases: Cache,
        approvals: Approvals,
    ) -> None:
        super().__init__(wiring, parts)
        self._releases = releases
        self._approvals = approvals
        self._announced = AnnouncedProblems()
        self._kinds = DiscoveredKinds(wiring.client)
        releases.add_index(_OWNER_INDEX, lambda obj: [str(key) for key in stacks_of(obj)])

    def make_context(self, raw: Object) -> ClusterStackContext:
        return ClusterStackContext(self.wiring, raw)

    async def gone(self, key: ObjectKey) -> Result | None:
        self._announced.forget(key)
        return None

    def steps(self, context: ClusterStackContext) -> Steps:
        return (
            self._skip,
            self._find_releases,
            self._find_latest,
            self._decide,
            self._delete,
            self._create,
            self._summarize,
        )

    # Steps.

    async def _find_releases(self, context: ClusterStackContext) -> None:
        found = self._releases.by(_OWNER_INDEX, str(context.key))
        context.existing = service.named(read(ClusterStackRelease, obj) for obj in found)
        ready = service.ready_releases(context.existing)
        context.latest_ready = ready[-1] if ready else None

    async def _find_latest(self, context: ClusterStackContext) -> None:
        spec = context.object.spec
        if not spec.auto_subscribe:
            return
        try:
            listing = await self._library.listing()
            context.true(CatalogCondition.ASSETS_CLIENT)
            names = [
                name
                for name in service.matching(listing.names, spec)
                if self._approvals.approves(context.key.namespace, name)
            ]
            context.latest = latest(names, await self._library.published(_ordered_by_time(names)))
            if context.latest is None and _is_new(context):
                context.again = LIST_AGE  # the list may be older than the release that the stack was made for
        except SourceUnusable as error:
            context.is_listed, context.again = False, CLIENT_AGAIN
            context.false(CatalogCondition.ASSETS_CLIENT, CatalogReason.CLIENT_FAILED, Severity.ERROR, str(error))
            context.warn(CatalogReason.CLIENT_FAILED, str(error))
            return
        except ReleaseError as error:
            context.is_listed = False
            context.true(CatalogCondition.ASSETS_CLIENT)
            context.false(CatalogCondition.RELEASES_SYNCED, CatalogReason.SYNC_FAILED, Severity.WARNING, str(error))
            return
        except BadName as error:
            raise _invalid(error) from error
        self._announced.warn(context, CatalogEvent.UNPARSABLE, listing.unknown)
        context.true(CatalogCondition.RELEASES_SYNCED)

    async def _decide(self, context: ClusterStackContext) -> None:
        namespace = context.key.namespace
        try:
            wanted = service.listed(context.object.spec)
        except BadName as error:
            raise _invalid(error) from error
        approved = [name for name in wanted if self._approvals.approves(namespace, name)]
        refused = [name for name in wanted if name not in approved and name not in context.existing]
        self._announced.warn(context, CatalogEvent.NOT_APPROVED, [refusal(namespace, name) for name in refused])
        present = [name for name in wanted if name in context.existing]
        context.plan = service.plan(
            context.existing,
            latest=context.latest,
            latest_ready=context.latest_ready,
            in_spec=[*approved, *present],
            in_use=releases_in_use(self._clusters, namespace),
        )

    async def _delete(self, context: ClusterStackContext) -> None:
        """Without the Clusters or the list it is not known what may go."""
        if not (context.is_listed and self._clusters.has_synced):
            return
        for name in context.plan.unwanted:
            release = context.existing[name]
            if release.metadata.deletion_timestamp is not None:
                continue
            try:
                await self.wiring.client.delete(
                    CLUSTER_STACK_RELEASES, release.metadata.name, context.key.namespace, uid=release.metadata.uid
                )
            except NotFound:
                continue
            except KubeError as error:
                context.event(NORMAL, CatalogEvent.NOT_DELETED, f"{name.tag}: {error}")
                raise

    async def _create(self, context: ClusterStackContext) -> None:
        template = await self._template(context)
        for name in context.plan.wanted:
            reference = await self._provide(context, template, name) if template is not None else None
            if name not in context.existing:
                await self._create_release(context, name, reference)
        context.true(CatalogCondition.STACK_RELEASES_SYNCED)

    async def _summarize(self, context: ClusterStackContext) -> Result | None:
        entries = [service.summary_of(name, context.existing.get(name)) for name in context.plan.wanted]
        _draft(context, "summary", [msgspec.to_builtins(entry) for entry in entries])
        ready = service.ready_releases(context.existing)
        _draft(context, "usableVersions", service.usable_versions(ready))
        if ready:
            newest = ready[-1]
            context.true(CatalogCondition.RELEASE_AVAILABLE)
            context.set_status("latestRelease", service.latest_release(newest, context.existing[newest]))
        return Result(requeue_after=context.again) if context.again is not None else None

    # Parts.

    async def _template(self, context: ClusterStackContext) -> ProviderTemplate | None:
        if context.object.spec.no_provider:
            return None
        try:
            return await read_template(context.object, self.wiring.client, self._kinds)
        except ProviderError as error:
            raise ConditionError(
                str(error),
                condition=CatalogCondition.PROVIDER_SYNCED,
                reason=CatalogReason.TEMPLATE_NOT_FOUND,
                severity=Severity.ERROR,
                actor=Actor.OPERATOR,
            ) from error

    async def _provide(self, context: ClusterStackContext, template: ProviderTemplate, name: ReleaseName) -> Object:
        try:
            reference, change = await clone(self.wiring.client, template, name, context.object)
        except KubeError as error:
            raise ConditionError(
                f"{template.resource.kind} {name.tag}: {error}",
                condition=CatalogCondition.PROVIDER_SYNCED,
                reason=CatalogReason.WRITE_FAILED,
                severity=Severity.WARNING,
                actor=Actor.PROVIDER,
            ) from error
        if change:
            reason = CatalogEvent.PROVIDER_CREATED if change == "created" else CatalogEvent.PROVIDER_UPDATED
            context.event(NORMAL, reason, f"{change} {template.resource.kind} {name.tag}")
        context.true(CatalogCondition.PROVIDER_SYNCED)
        return reference

    async def _create_release(self, context: ClusterStackContext, name: ReleaseName, reference: Object | None) -> None:
        body: Object = {
            "apiVersion": CLUSTER_STACK_RELEASES.api_version,
            "kind": CLUSTER_STACK_RELEASES.kind,
            "metadata": {
                "name": name.tag,
                "namespace": context.key.namespace,
                "ownerReferences": [owner_reference(context.raw, controller=False, block_deletion=False)],
            },
            "spec": {"providerRef": reference} if reference is not None else {},
        }
        try:
            made = await self.wiring.client.create(CLUSTER_STACK_RELEASES, body, field_manager=self.field_manager)
        except AlreadyExists:
            # The cache is behind, or another ClusterStack of the same series has made it.
            return
        except KubeError as error:
            context.event(NORMAL, CatalogEvent.NOT_CREATED, f"{name.tag}: {error}")
            raise ConditionError(
                f"ClusterStackRelease {name.tag}: {error}",
                condition=CatalogCondition.STACK_RELEASES_SYNCED,
                reason=CatalogReason.WRITE_FAILED,
                severity=Severity.WARNING,
            ) from error
        self._releases.learn(made)
        self.wiring.events.event(
            made, NORMAL, CatalogEvent.RELEASE_CREATED, f"created by ClusterStack {context.key.name}"
        )


def stacks_of(release: Object) -> Iterable[ObjectKey]:
    """The ClusterStacks that own a ClusterStackRelease, by plain references too."""
    metadata = metadata_of(release)
    for reference in metadata.owner_references:
        group = reference.api_version.rpartition("/")[0]
        if (group, reference.kind) == (CLUSTER_STACKS.group, CLUSTER_STACKS.kind):
            yield ObjectKey(metadata.namespace, reference.name)


def _is_new(context: ClusterStackContext) -> bool:
    """True while the list of releases may be older than the ClusterStack."""
    created = context.object.metadata.creation_timestamp
    return created is not None and context.now - parse_time(created) < LIST_AGE


def _ordered_by_time(names: Iterable[ReleaseName]) -> list[ReleaseName]:
    """The names whose order is that of their publication."""
    return [name for name in names if name.version.patch and not name.version.patch.isdigit()]


def _invalid(error: BadName) -> ConditionError:
    return ConditionError(
        f"spec: {error}",
        condition=CatalogCondition.STACK_RELEASES_SYNCED,
        reason=CatalogReason.WRITE_FAILED,
        severity=Severity.WARNING,
        actor=Actor.USER,
        after=NEVER,
    )


def _draft(context: ClusterStackContext, field: str, value: Any) -> None:
    """Draft a field of the status; an empty value removes it, as Go leaves out what is empty."""
    context.set_status(field, value or None)


__all__ = ["ClusterStackController", "stacks_of"]
