"""The steps that install a module: resolve, render, prune, apply, create its default resource."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from hortus.domains.modules.manifests.context import MODULE_CR, RESOURCES, ManifestContext, ManifestError
from hortus.domains.modules.manifests.placing import check_places, scopes_of
from hortus.domains.modules.manifests.rendering import Rendering, id_of
from hortus.domains.modules.manifests.secrets import InjectedSecrets
from hortus.domains.modules.manifests.synced import SyncedInventory, leaving, policy, synced_of
from hortus.domains.modules.manifests.transforms import BadObject, Transformation, place, title, transform
from hortus.domains.modules.names import Annotation, FieldOwner, Finalizer, State
from hortus.domains.modules.settings import Settings
from hortus.domains.modules.types import InstallSource
from hortus.engine import Actor, Result, StepError, Steps
from hortus.engine.applysets import ApplyReport, ApplySet, ClusterClient, ObjectAction, UnknownKind
from hortus.engine.applysets.resources import gvk_of
from hortus.kube import Clock
from hortus.kube.errors import AlreadyExists, NotFound, TransportError, Unauthorized
from hortus.kube.objects import Object, ObjectKey, Resource

SILENT: Final = (TransportError, Unauthorized)
"""Errors of a cluster that does not answer, or does not take the credential any more."""
_NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


class Installing:
    """Installs modules. `installs` reports whether a Manifest installs something on the cluster of a Kyma."""

    def __init__(
        self,
        rendering: Rendering,
        secrets: InjectedSecrets,
        *,
        installs: Callable[[ObjectKey, str], bool],
        settings: Settings,
        clock: Clock,
    ) -> None:
        self._rendering = rendering
        self._secrets = secrets
        self._installs = installs
        self._settings = settings
        self._clock = clock

    # Steps, in their order.

    @property
    def steps(self) -> Steps:
        """The steps after which the cluster holds all objects of the module."""
        return self.resolve, self.render, self.prune, self.apply, self.create_resource, self.hold_resource

    async def resolve(self, context: ManifestContext) -> None:
        """Notes the layer of a Manifest that has none noted yet."""
        context.phase = "manifest_parse_spec"
        source = source_of(context)
        if not context.annotation(Annotation.SYNCED_OCI_REF):
            context.phase = "manifest_init_synced_oci_ref"
            await context.annotate(Annotation.SYNCED_OCI_REF, source.ref)

    async def render(self, context: ManifestContext) -> None:
        context.phase = "manifest_render_resources"
        objects = await self._rendering.objects(source_of(context), context.spec.install.name)
        given = await self._transformation(context)
        try:
            transform(objects, given)
            place(objects, await scopes_of(objects, context.kinds))
            check_places(objects, self._settings.manifest.forbidden_namespaces)
        except BadObject as error:
            raise StepError(str(error), reason="ObjectRefused", actor=Actor.PROVIDER) from error
        context.rendered = objects
        context.confirm(RESOURCES, "resources are parsed and ready for use")

    async def prune(self, context: ManifestContext) -> Result | None:
        context.phase = "manifest_prune_diff"
        shared = self._settings.sync_namespace
        gone = list(leaving(context.synced, map(id_of, context.rendered), shared=shared))
        if not gone:
            return None
        source = source_of(context)
        if source.ref == context.annotation(Annotation.SYNCED_OCI_REF):
            self._rendering.evict(source, context.spec.install.name)
            names = ", ".join(f"{one.kind} {one.name}" for one in gone[:5])
            raise ManifestError(
                f"{len(gone)} objects are missing in layer {source.ref}, which had them before ({names}): nothing is "
                "deleted, and the layer is read again",
                state=State.WARNING,
                reason="LayerTruncated",
            )
        report = await self._set(context).prune(context.rendered)
        check(report, "ObjectNotDeleted")
        if report.complete:
            return None
        context.phase = "manifest_prune_diff_not_finished"
        return Result(requeue_after=self._settings.manifest.requeue.busy)

    async def apply(self, context: ManifestContext) -> None:
        """Raises StepError when an object could not be applied; the others are."""
        context.phase = "manifest_sync_resources"
        objects = await self._without_shared(context)
        report = await self._set(context).apply(objects, whole=True)
        check(report, "ObjectNotApplied")
        if report.of(ObjectAction.WAITING):
            raise StepError(report.message(), reason="ObjectsWait", after=self._settings.manifest.requeue.busy)

    async def create_resource(self, context: ManifestContext) -> None:
        """Creates the default module CR, by the contract once: one that its user deleted stays deleted."""
        resource = context.resource
        keep = self._settings.manifest.keep_resource or context.is_external
        if resource is None or (context.holds(MODULE_CR) and not keep):
            return
        context.phase = "manifest_sync_resources"
        kind = await resource_kind(context, resource)
        if kind is None:
            fix = "install its operator" if context.is_external else "add the definition of its kind to the module"
            raise StepError(
                f"Manifest {context.key}: spec.resource: the cluster does not serve {title(resource)}: {fix}",
                reason="ResourceKindUnknown",
                actor=Actor.PROVIDER,
            )
        with suppress(AlreadyExists):
            await context.client.create(kind, placed(resource, kind), field_manager=FieldOwner.CUSTOM_RESOURCE)
        context.confirm(MODULE_CR, "module CR was created")

    async def hold_resource(self, context: ManifestContext) -> None:
        """Holds the Manifest until its default module CR is gone."""
        if context.resource is not None:
            context.phase = "manifest_add_finalizer"
            await context.apply_finalizers(Finalizer.CUSTOM_RESOURCE, manager=FieldOwner.CUSTOM_RESOURCE)

    async def note_layer(self, context: ManifestContext) -> None:
        """Notes that the layer was installed."""
        ref = source_of(context).ref
        if context.annotation(Annotation.SYNCED_OCI_REF) != ref:
            context.phase = "manifest_update_synced_oci_ref"
            await context.annotate(Annotation.SYNCED_OCI_REF, ref)

    # For removal.

    async def delete(self, context: ManifestContext) -> ApplyReport:
        """Delete all objects of the module, in waves; repeat until the report is complete."""
        return await self._set(context).delete()

    # Parts.

    async def _transformation(self, context: ManifestContext) -> Transformation:
        return Transformation(
            name=context.key.name,
            namespace=context.key.namespace,
            images=context.spec.localized_images,
            pull_secret=self._settings.pull_secret,
            manager=context.spec.manager,
            injected=await self._secrets.of(context),
        )

    def _set(self, context: ManifestContext) -> ApplySet:
        def exists(owner: str) -> bool:
            return owner == context.identity or self._installs(ObjectKey(*_parts(owner)), context.kyma)

        return ApplySet(
            ClusterClient(context.client),
            self.inventory(context),
            kinds=context.kinds,
            field_manager=FieldOwner.MODULE_RESOURCES,
            policy=policy(exists),
            clock=self._clock,
        )

    def inventory(self, context: ManifestContext) -> SyncedInventory:
        """The inventory of the Manifest, the same in all steps of one reconcile."""
        if context.inventory is None:
            context.inventory = SyncedInventory(
                context.identity, context.synced, shared=self._settings.sync_namespace, store=context.store
            )
        return context.inventory

    async def _without_shared(self, context: ManifestContext) -> list[Object]:
        """The rendered objects without the namespace of modules, where that exists: modules would take it from each
        other at every reconcile."""
        shared = [
            obj for obj in context.rendered if id_of(obj)[1:] == (self._settings.sync_namespace, "", "v1", "Namespace")
        ]
        if not shared:
            return context.rendered
        try:
            await context.client.get(_NAMESPACES, self._settings.sync_namespace)
        except NotFound:
            return context.rendered
        self.inventory(context).keep(map(synced_of, map(id_of, shared)))
        return [obj for obj in context.rendered if obj not in shared]


def source_of(context: ManifestContext) -> InstallSource:
    """The place of the layer. Raises StepError."""
    try:
        source = msgspec.convert(context.spec.install.source, InstallSource)
    except msgspec.ValidationError as error:
        raise _bad_source(context, str(error)) from error
    for field in ("repo", "name", "ref"):
        if not getattr(source, field):
            raise _bad_source(context, f"{field} is missing")
    return source


def _bad_source(context: ManifestContext, problem: str) -> StepError:
    return StepError(
        f"Manifest {context.key}: spec.install.source: {problem}: repo, name and ref of a layer are needed",
        reason="InstallSourceInvalid",
        actor=Actor.USER,
    )


async def resource_kind(context: ManifestContext, resource: Object, *, known: bool = True) -> Resource | None:
    """The kind of the default module CR as it is served; None where it is not. Raises StepError.

    Without `known` the cluster is asked again.
    """
    try:
        gvk = gvk_of(resource)
    except ValueError as error:
        raise StepError(
            f"Manifest {context.key}: spec.resource: {error}", reason="ResourceInvalid", actor=Actor.USER
        ) from error
    for fresh in (False, True) if known else (True,):
        try:
            return await context.kinds.resource(gvk, fresh=fresh)
        except UnknownKind:
            continue
    return None


def placed(resource: Object, kind: Resource) -> Object:
    """A copy in the namespace that it names, or in none where its kind has none."""
    metadata = dict(resource["metadata"])
    if not kind.namespaced:
        metadata.pop("namespace", None)
    return {**resource, "metadata": metadata}


def _parts(identity: str) -> tuple[str, str]:
    namespace, _, name = identity.partition("/")
    return namespace, name


def check(report: ApplyReport, reason: str) -> None:
    """Raises one failure for those of many objects; of a cluster that does not answer, its own."""
    unfinished = report.of(ObjectAction.FAILED)
    errors = [one.error for one in unfinished if one.error is not None]
    if errors and len(errors) == len(unfinished) and all(isinstance(error, SILENT) for error in errors):
        raise errors[0]
    if unfinished:
        raise StepError(report.message(), reason=reason, actor=Actor.PROVIDER, after=report.retry_after) from next(
            iter(errors), None
        )
