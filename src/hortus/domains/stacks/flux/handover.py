"""Hands charts of a ClusterAddon to Flux, waits for its HelmReleases, and takes them back.

Objects it owns: HelmReleases, OCIRepositories and Secrets with the label fleet.hortus.dev/flux in the Cluster's
namespace; the namespaces of helm's records inside the cluster. It never has Flux uninstall a chart: a HelmRelease is
suspended before it is deleted, so that helm-controller leaves the objects alone (fluxcd/helm-controller,
`internal/controller/helmrelease_controller.go`). Objects that no chart has any more are deleted by the list of the
ClusterAddon.

A chart is noted in an annotation before its HelmRelease is created, so a process that is killed leaves nothing unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from hortus.domains.stacks.addons.applied import CHARTS
from hortus.domains.stacks.addons.context import AddonContext
from hortus.domains.stacks.addons.creation import addon_key
from hortus.domains.stacks.addons.failures import condition_error, workload_errors
from hortus.domains.stacks.addons.reasons import APPLY_FAILED, FLUX_NOT_SERVED, RENDER_FAILED, AddonCondition
from hortus.domains.stacks.addons.rendering import RELEASE
from hortus.domains.stacks.conditions import Severity
from hortus.domains.stacks.context import ConditionError
from hortus.domains.stacks.flux.objects import (
    CHART,
    CLUSTER_LABEL,
    DIGEST,
    HANDED,
    HELM_RELEASES,
    REPOSITORIES,
    FluxChart,
    FluxObject,
    FluxState,
    helm_release,
    read_flux,
    release_name,
    repository,
    secrets,
    state_of,
    storage_namespace,
)
from hortus.domains.stacks.flux.ownership import take_fields
from hortus.domains.stacks.flux.registry import ChartAccess, ChartRegistry
from hortus.domains.stacks.names import FIELD_MANAGER
from hortus.domains.stacks.types import CLUSTER_ADDONS, ClusterAddon
from hortus.engine import Cache, Change, Source, Trigger, Watch, metadata_of
from hortus.engine.apply import Applier
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.outcomes import NEVER
from hortus.engine.within import within
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource, key_of
from hortus.render.helm import ChartError, ChartSource

MANAGER: Final = "hortus"
CLUSTER_INDEX: Final = "flux-cluster"
_NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_PATIENCE: Final = 10.0
"""Seconds that the first reconcile waits for the list of HelmReleases; later ones do not wait."""
_RECORDS_PLACE: Final = {"app.kubernetes.io/managed-by": MANAGER, "app.kubernetes.io/component": "helm-records"}
"""Labels of namespaces that are made for helm's records, and deleted with them."""
_RECORDS: Final = f"owner=helm,name={RELEASE.name}"
"""Selects helm's records of a release (helm.sh/helm, `pkg/storage/driver/secrets.go`)."""


class FluxStanding(NamedTuple):
    """The state of all HelmReleases of a ClusterAddon at rest."""

    intact: bool
    """False where an object is missing, or was changed by somebody else."""
    problem: str
    """The reports of HelmReleases that are not ready; empty where all are."""


class FluxCaches(NamedTuple):
    """The objects that were given to Flux. Secrets are without their values."""

    releases: Cache
    repositories: Cache
    secrets: Cache

    @property
    def complete(self) -> bool:
        return all(cache.has_synced for cache in self)

    async def synced(self) -> None:
        """Return when all lists are complete."""
        for cache in self:
            await cache.synced()


def handed(addon: ClusterAddon) -> tuple[str, ...] | None:
    """The charts that were handed to Flux; None where Hortus applies the addons."""
    text = addon.metadata.annotations.get(HANDED)
    return None if text is None else tuple(text.split())


def clusters_of(obj: Object) -> Iterable[str]:
    """Namespace and name of the Cluster that an object was made for: the index of the caches."""
    metadata = metadata_of(obj)
    return (f"{metadata.namespace}/{metadata.labels.get(CLUSTER_LABEL, '')}",)


class FluxHandover:
    """Hands over, and takes back."""

    def __init__(self, client: Client, *, caches: FluxCaches, registry: ChartRegistry, addons: Cache) -> None:
        self._client = client
        self._caches = caches
        self._registry = registry
        self._addons = addons
        self._applier = Applier(client, field_manager=MANAGER)
        self._accepted: dict[ObjectKey, int] = {}
        self._absent = False
        """True once it has been waited for in vain: then it comes by a watch."""
        self.trigger = Trigger()
        registry.on_identity(self._identified)

    def sources(self) -> list[Source]:
        """The objects that were given to Flux, and another certificate. Flux may be down or not there."""
        objects = [
            Watch(cache, to=_addon_of, when=_matters, awaited=False)
            for cache in (self._caches.releases, self._caches.repositories, self._caches.secrets)
        ]
        return [*objects, self.trigger]

    def standing(self, context: AddonContext) -> FluxStanding:
        """The state at rest, from caches."""
        intact, problems = self._has_secrets(context), []
        for key in handed(context.object) or ():
            found = self._live(context, key)
            source = self._source(found) if found is not None else None
            if found is None or source is None or not (self._intact(found) and self._intact(source)):
                intact = False
                continue
            if state := _trouble(state_of(found)):
                problems.append(f"HelmRelease {found.metadata.namespace}/{found.metadata.name}: {state}")
        return FluxStanding(intact, "; ".join(problems))

    async def begin(self, context: AddonContext) -> None:
        """Note that Flux applies the addons from now on."""
        if handed(context.object) is None:
            # The note of charts as Hortus applied them ends with it.
            await context.patch({"metadata": {"annotations": {HANDED: "", CHARTS: None}}})

    async def apply(self, context: AddonContext, key: str, source: ChartSource, values: Mapping[str, Any]) -> None:
        """Hand a chart over. Raises ConditionError until helm-controller has installed just this chart and values."""
        access = self._access(context)
        known = handed(context.object) or ()
        if key not in known:
            await self._note(context, (*known, key))
        one = await self._chart(context, key, source, values)
        await self._make_records_place(context, key)
        owner = _owner(context)
        for secret in secrets(one.cluster, access, owner):
            await self._apply_secret(secret)
        made = await self._applier.apply(REPOSITORIES, repository(one, access, owner), cache=self._caches.repositories)
        self._accept(read_flux(made.object))
        context.flux_sources.add(one.source)
        await self._replace(context, one)
        written = await self._applier.apply(HELM_RELEASES, helm_release(one), cache=self._caches.releases)
        found = read_flux(written.object)
        if not (state := state_of(found)).ready:
            raise _waiting(f"HelmRelease {key_of(written.object)}: {_reported(state)}", failed=state.failed)
        self._accept(found)

    async def keep_only(self, context: AddonContext, keys: Iterable[str]) -> None:
        """Take all other charts back, and delete sources that no HelmRelease names. Raises ConditionError."""
        known = handed(context.object) or ()
        await self.release(context, [key for key in known if key not in set(keys)])
        for obj in self._caches.repositories.by(CLUSTER_INDEX, str(context.cluster.key)):
            if key_of(obj).name not in context.flux_sources:
                await self._delete(REPOSITORIES, key_of(obj))

    async def release(self, context: AddonContext, keys: Iterable[str]) -> None:
        """Take charts back without uninstalling them. Raises ConditionError until their HelmReleases are gone."""
        known = handed(context.object) or ()
        leaving = [key for key in known if key in set(keys)]
        left = [key for key in leaving if not await self._is_gone(context, key)]
        if left:
            name = ObjectKey(context.key.namespace, release_name(context.cluster.key.name, left[0]))
            raise _waiting(
                f"HelmRelease {name} is suspended and deleted, and waits for helm-controller: where Flux runs no more, "
                "remove its finalizer finalizers.fluxcd.io"
            )
        for key in leaving:
            await self._drop_records(context, key)
        if leaving:
            await self._note(context, [key for key in known if key not in leaving])

    async def take_back(self, context: AddonContext) -> None:
        """Take all charts back. Raises ConditionError until Flux has released them."""
        await self.release(context, handed(context.object) or ())
        async with workload_errors(context):
            await take_fields(
                context.client,
                context.kinds,
                context.object.status.resources,
                namespace=RELEASE.namespace,
                manager=FIELD_MANAGER,
            )
        at = str(context.cluster.key)
        for resource, cache in ((REPOSITORIES, self._caches.repositories), (SECRETS, self._caches.secrets)):
            for obj in cache.by(CLUSTER_INDEX, at):
                await self._delete(resource, key_of(obj))
        await context.patch({"metadata": {"annotations": {HANDED: None}}})

    async def abandon(self, context: AddonContext) -> None:
        """Suspend and delete the HelmReleases of a ClusterAddon that is deleted; Flux need not run for that."""
        for key in handed(context.object) or ():
            name = release_name(context.object.spec.cluster_ref.name, key)
            await self._suspend_and_delete(ObjectKey(context.key.namespace, name))

    # Parts.

    async def ready(self, context: AddonContext) -> None:
        """Wait at the start for what Flux has. Raises ConditionError where it is not served."""
        if not self._caches.complete and not self._absent:
            with suppress(TimeoutError):
                await within(context.wiring.clock, _PATIENCE, self._caches.synced())
            self._absent = not self._caches.complete
        if not self._caches.complete:
            raise condition_error(
                AddonCondition.FLUX_READY,
                FLUX_NOT_SERVED,
                f"{context.title}: HelmReleases ({HELM_RELEASES.api_version}) and OCIRepositories "
                f"({REPOSITORIES.api_version}) cannot be read: install Flux 2.7 or later, or have Hortus apply the "
                "addons by the Cluster's annotation fleet.hortus.dev/addons: hortus",
                severity=Severity.ERROR,
            )

    def _access(self, context: AddonContext) -> ChartAccess:
        access = self._registry.access(context.key.namespace)
        if access is None:
            raise _waiting(
                f"{context.title}: the server of charts has no certificate yet, which it shares with runtime hooks",
                watched=False,
            )
        return access

    async def _chart(
        self, context: AddonContext, key: str, source: ChartSource, values: Mapping[str, Any]
    ) -> FluxChart:
        tag = context.release.name.tag
        try:
            bundle = await asyncio.to_thread(self._registry.bundles.of, source)
        except ChartError as error:
            raise condition_error(
                AddonCondition.CHART_TEMPLATED,
                RENDER_FAILED,
                f"release {tag}: {key}: {error}",
                severity=Severity.ERROR,
                after=NEVER,
            ) from error
        return FluxChart(context.cluster.key, key, bundle.chart, tag, bundle.digest, values)

    async def _replace(self, context: AddonContext, one: FluxChart) -> None:
        """Take back a HelmRelease of another chart: helm-controller would uninstall that first."""
        live = self._live(context, one.key)
        if live is None:
            return
        same = live.metadata.annotations.get(CHART, one.chart) == one.chart
        if same and live.metadata.deletion_timestamp is None:
            return
        if not await self._is_gone(context, one.key):
            raise _waiting(
                f"HelmRelease {context.key.namespace}/{one.name} is replaced, since its chart has another name"
            )

    async def _is_gone(self, context: AddonContext, key: str) -> bool:
        live = self._live(context, key)
        if live is None:
            return True
        at = ObjectKey(live.metadata.namespace, live.metadata.name)
        if live.metadata.deletion_timestamp is None or not live.is_suspended:
            await self._suspend_and_delete(at)
        return False

    async def _suspend_and_delete(self, at: ObjectKey) -> None:
        with suppress(NotFound):
            suspended = {"spec": {"suspend": True}}
            await self._client.patch(HELM_RELEASES, at.name, suspended, at.namespace, field_manager=MANAGER)
        await self._delete(HELM_RELEASES, at)

    async def _delete(self, resource: Resource, at: ObjectKey) -> None:
        with suppress(NotFound):
            await self._client.delete(resource, at.name, at.namespace)

    async def _note(self, context: AddonContext, keys: Iterable[str]) -> None:
        await context.patch({"metadata": {"annotations": {HANDED: " ".join(keys)}}})

    async def _make_records_place(self, context: AddonContext, key: str) -> None:
        name = storage_namespace(key)
        if name == RELEASE.namespace:
            return
        async with workload_errors(context):
            try:
                await context.client.get(_NAMESPACES, name)
            except NotFound:
                with suppress(AlreadyExists):
                    made = {"metadata": {"name": name, "labels": dict(_RECORDS_PLACE)}}
                    await context.client.create(_NAMESPACES, made)

    async def _drop_records(self, context: AddonContext, key: str) -> None:
        """Delete helm's records of a chart: nobody shall uninstall by them what is installed by others."""
        place = storage_namespace(key)
        async with workload_errors(context):
            if place == RELEASE.namespace:
                await context.client.delete_collection(SECRETS, place, labels=_RECORDS)
                return
            with suppress(NotFound):
                live = metadata_of(await context.client.get(_NAMESPACES, place))
                if _RECORDS_PLACE.items() <= live.labels.items():
                    await context.client.delete(_NAMESPACES, place, uid=live.uid)
                else:
                    # Somebody else made it, or Hortus before it labelled such namespaces.
                    await context.client.delete_collection(SECRETS, place, labels=_RECORDS)

    async def _apply_secret(self, secret: Object) -> None:
        live = self._caches.secrets.get(key_of(secret))
        if live is None or metadata_of(live).annotations.get(DIGEST) != metadata_of(secret).annotations[DIGEST]:
            await self._client.apply(SECRETS, secret, field_manager=MANAGER)

    def _has_secrets(self, context: AddonContext) -> bool:
        access = self._registry.access(context.key.namespace)
        if access is None or not handed(context.object):
            return True
        for secret in secrets(context.cluster.key, access, _owner(context)):
            live = self._caches.secrets.get(key_of(secret))
            if live is None or metadata_of(live).annotations.get(DIGEST) != metadata_of(secret).annotations[DIGEST]:
                return False
        return True

    def _live(self, context: AddonContext, key: str) -> FluxObject | None:
        at = ObjectKey(context.key.namespace, release_name(context.cluster.key.name, key))
        found = self._caches.releases.get(at)
        return None if found is None else read_flux(found)

    def _source(self, release: FluxObject) -> FluxObject | None:
        found = self._caches.repositories.get(ObjectKey(release.metadata.namespace, release.source))
        return None if found is None else read_flux(found)

    def _intact(self, found: FluxObject) -> bool:
        at = ObjectKey(found.metadata.namespace, found.metadata.name)
        return found.is_intact or (
            found.metadata.deletion_timestamp is None and self._accepted.get(at) == found.metadata.generation
        )

    def _accept(self, found: FluxObject) -> None:
        """Remember an object that a server stores otherwise than it was written, such as with further defaults."""
        if not found.is_intact:
            self._accepted[ObjectKey(found.metadata.namespace, found.metadata.name)] = found.metadata.generation

    def _identified(self) -> None:
        """The server has another certificate: the Secrets of all ClusterAddons follow."""
        for obj in self._addons.values():
            if HANDED in metadata_of(obj).annotations:
                self.trigger.fire(key_of(obj))


def _addon_of(obj: Object) -> list[ObjectKey]:
    metadata = metadata_of(obj)
    cluster = ObjectKey(metadata.namespace, metadata.labels.get(CLUSTER_LABEL, ""))
    return [addon_key(cluster)]


def _matters(change: Change) -> bool:
    """Another spec, a deletion, or another state; not each time that Flux has looked."""
    if change.old is None or change.new is None:
        return True
    old, new = read_flux(change.old), read_flux(change.new)
    judged = [(one.metadata.generation, one.metadata.deletion_timestamp, state_of(one)) for one in (old, new)]
    return judged[0] != judged[1] or old.metadata.annotations != new.metadata.annotations


def _owner(context: AddonContext) -> Object:
    return {
        "apiVersion": CLUSTER_ADDONS.api_version,
        "kind": CLUSTER_ADDONS.kind,
        "name": context.key.name,
        "uid": context.object.metadata.uid,
    }


def _trouble(state: FluxState) -> str:
    return "" if state.ready or state.reason == "Progressing" else _reported(state)


def _reported(state: FluxState) -> str:
    return f"{state.reason}: {state.message}"


def _waiting(message: str, *, failed: bool = False, watched: bool = True) -> ConditionError:
    """The work goes on when the object changes, or without a watch after some seconds."""
    severity = Severity.ERROR if failed else Severity.INFO
    return condition_error(AddonCondition.CHART_APPLIED, APPLY_FAILED, message, severity=severity, watched=watched)
