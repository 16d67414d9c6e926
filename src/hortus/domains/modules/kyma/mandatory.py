"""Mandatory modules: each cluster has them, and no Kyma lists them.

Two controllers: one installs them for each Kyma, the other deletes their Manifests once their ModuleReleaseMeta is
deleted. They own the Manifests with the label mandatory-module and the finalizer of mandatory ModuleReleaseMetas. They
never write the status of a Kyma. A module that cannot be installed leaves the others alone.

Behaviour: kyma-project/lifecycle-manager, `internal/controller/mandatorymodule`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from hortus.domains.modules.kyma.catalog import ModuleCatalog
from hortus.domains.modules.kyma.documents import changed_at
from hortus.domains.modules.kyma.fanout import MANAGED, DelayedChanges, upgrade_delay, upgrade_time
from hortus.domains.modules.kyma.manifests import UnusableComponent, is_update_needed, manifest_for, manifest_name
from hortus.domains.modules.kyma.metrics import KymaMetrics
from hortus.domains.modules.kyma.modules import BY_KYMA, index_manifests
from hortus.domains.modules.kyma.resolution import ResolvedModule, template_name
from hortus.domains.modules.kyma.seams import Components
from hortus.domains.modules.names import FieldOwner, Finalizer, Label, is_true
from hortus.domains.modules.settings import KymaSettings
from hortus.domains.modules.types import KYMAS, MANIFESTS, Kyma, Manifest, Module, ModuleReleaseMeta
from hortus.engine import (
    Change,
    KindController,
    ReconcileContext,
    Result,
    StepError,
    Steps,
    TypedCache,
    Wiring,
    metadata_of,
    read,
    to_owner,
)
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, ObjectKey
from hortus.schema import ObjectMeta

BY_MODULE: Final = "module"
FINALIZER_ERROR: Final = "SettingMandatoryModuleTemplateFinalizerError"
DELETION_ERROR: Final = "DeletingMandatoryModuleManifestError"
_LONGEST_EVENT: Final = 100
_REVALIDATION: Final = 300.0
"""Seconds after which a version that was pushed again is seen."""

_KymaContext = ReconcileContext[Kyma]
_ReleaseContext = ReconcileContext[ModuleReleaseMeta]


class _Seen(NamedTuple):
    """All that a reconcile reads: the cached objects themselves, which are replaced when they change."""

    kyma: Object
    manifests: list[Object]
    catalog: int
    period: int
    """Counts the times at which the registry is asked for versions that were pushed again."""

    def same(self, other: _Seen) -> bool:
        return (
            self.kyma is other.kyma
            and (self.catalog, self.period) == (other.catalog, other.period)
            and len(self.manifests) == len(other.manifests)
            and all(old is new for old, new in zip(self.manifests, other.manifests, strict=True))
        )


class MandatoryInstaller(KindController[_KymaContext]):
    """Installs the mandatory modules of one Kyma at a time; see the module's head."""

    kind = Kyma
    field_manager = FieldOwner.LIFECYCLE

    def __init__(
        self,
        wiring: Wiring[Kyma],
        *,
        catalog: ModuleCatalog,
        components: Components,
        manifests: TypedCache[Manifest],
        metrics: KymaMetrics,
        settings: KymaSettings,
        sync_namespace: str,
    ) -> None:
        super().__init__(wiring)
        self._catalog = catalog
        self._components = components
        self._manifests = manifests
        index_manifests(manifests)
        self._metrics = metrics
        self._settings = settings
        self._sync_namespace = sync_namespace
        self._settled: dict[ObjectKey, _Seen] = {}

    def steps(self, context: _KymaContext) -> Steps:
        return (self._rest, self._skip, self._install)

    def report(self, context: _KymaContext, error: StepError) -> None:
        """Mandatory modules are not in the status of a Kyma: failures are logged."""

    async def gone(self, key: ObjectKey) -> Result | None:
        self._settled.pop(key, None)
        return None

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Forget the Kymas that have become another replica's."""
        for key in [key for key in self._settled if not holds(key)]:
            del self._settled[key]

    async def _rest(self, context: _KymaContext) -> Result | None:
        """End the reconcile where nothing that it reads has changed since the last one; it costs microseconds then."""
        known = self._settled.get(context.key)
        if known is None or not known.same(self._seen(context)):
            return None
        return Result(requeue_after=self._settings.mandatory_requeue)

    def _seen(self, context: _KymaContext) -> _Seen:
        manifests = self._manifests.raw.by(BY_KYMA, str(context.key))
        return _Seen(context.raw, manifests, self._catalog.version, int(context.now // _REVALIDATION))

    async def _skip(self, context: _KymaContext) -> Result | None:
        if is_true(context.object.metadata.labels, Label.SKIP_RECONCILIATION):
            return Result()
        return None

    async def _install(self, context: _KymaContext) -> Result:
        """Install each module; raises StepError naming those that failed once all were tried."""
        seen = self._seen(context)
        releases = self._catalog.mandatory(context.key.namespace)
        self._metrics.mandatory(len(releases))
        if not releases:
            # The first one reaches every Kyma by an event.
            return Result()
        errors, pause = [], self._settings.mandatory_requeue
        for release in releases:
            if release.metadata.deletion_timestamp is not None:
                continue
            try:
                wait = await self._module(context, release)
            except (StepError, KubeError, UnusableComponent) as error:
                errors.append(f"{release.metadata.name}: {error}")
            else:
                pause = min(pause, wait)
        if errors:
            raise StepError("; ".join(errors), reason="MandatoryModulesFailed")
        if pause == self._settings.mandatory_requeue:
            self._settled[context.key] = seen
        return Result(requeue_after=pause)

    async def _module(self, context: _KymaContext, release: ModuleReleaseMeta) -> float:
        """Install one module; returns the seconds until it is due where it is held back."""
        kyma, name = context.object, release.metadata.name
        resolved = self._resolved(context.key.namespace, release)
        component = await self._components.component(resolved.component, resolved.template.spec.version)
        config = manifest_for(kyma, resolved, component, sync_namespace=self._sync_namespace, mandatory=True)
        current = self._manifests.get(
            ObjectKey(context.key.namespace, manifest_name(kyma.metadata.name, resolved.component, name))
        )
        if not is_update_needed(current, read(Manifest, config), resolved.template, None):
            return self._settings.mandatory_requeue
        if current is not None and (wait := self._wait(context, release, resolved)) > 0:
            return wait
        written = await self.wiring.client.apply(MANIFESTS, config, field_manager=FieldOwner.LIFECYCLE)
        self._manifests.raw.learn(written)
        return self._settings.mandatory_requeue

    def _wait(self, context: _KymaContext, release: ModuleReleaseMeta, resolved: ResolvedModule) -> float:
        """Seconds for which an upgrade is held back, so that it spreads over the fleet."""
        raw = self._catalog.releases.get(ObjectKey(context.key.namespace, release.metadata.name))
        due = upgrade_time(
            context.key,
            release.metadata.name,
            resolved.version,
            changed=changed_at(raw) if raw is not None else 0.0,
            longest=self._settings.rollout_delay,
        )
        return due - context.now

    def _resolved(self, namespace: str, release: ModuleReleaseMeta) -> ResolvedModule:
        name = release.metadata.name
        assert release.spec.mandatory is not None, "the catalog lists mandatory releases only"
        version = release.spec.mandatory.version
        template = self._catalog.template(ObjectKey(namespace, template_name(name, version)))
        if template is None:
            problem = f"ModuleTemplate {template_name(name, version)} does not exist; publish it"
            raise StepError(problem, reason="TemplateMissing")
        if not release.spec.ocm_component_name:
            raise StepError(f"ModuleReleaseMeta {name} has no spec.ocmComponentName", reason="ComponentMissing")
        return ResolvedModule(Module(name=name), "", version, template, release.spec.ocm_component_name)


class MandatoryDeletion(KindController[_ReleaseContext]):
    """Deletes the Manifests of one mandatory module at a time; see the module's head."""

    kind = ModuleReleaseMeta
    field_manager = FieldOwner.LIFECYCLE

    def __init__(self, wiring: Wiring[ModuleReleaseMeta], *, manifests: TypedCache[Manifest], pause: float) -> None:
        """`pause` is the time in seconds between two reconciles."""
        super().__init__(wiring)
        self._manifests = manifests
        self._pause = pause
        manifests.add_index(BY_MODULE, _mandatory_module)

    def steps(self, context: _ReleaseContext) -> Steps:
        return (self._keep_finalizer,)

    def finalize_steps(self, context: _ReleaseContext) -> Steps:
        return (self._delete_manifests, self._release)

    def report(self, context: _ReleaseContext, error: StepError) -> None:
        """ModuleReleaseMetas have no status: failures are events."""

    async def _keep_finalizer(self, context: _ReleaseContext) -> Result | None:
        if context.object.spec.mandatory is None:
            return None
        try:
            await context.ensure_finalizer(Finalizer.MANDATORY_MODULE)
        except KubeError as error:
            context.event("Warning", FINALIZER_ERROR, str(error)[-_LONGEST_EVENT:])
            raise
        return Result(requeue_after=self._pause)

    async def _delete_manifests(self, context: _ReleaseContext) -> Result | None:
        if Finalizer.MANDATORY_MODULE not in context.object.metadata.finalizers:
            return Result()
        name = context.key.name
        found = self._manifests.by(BY_MODULE, str(context.key))
        if not found:
            return None
        labels = f"{Label.MODULE_NAME}={name},{Label.MANDATORY_MODULE}=true"
        if any(one.metadata.deletion_timestamp is None for one in found):
            try:
                await self.wiring.client.delete_collection(MANIFESTS, context.key.namespace, labels)
            except KubeError as error:
                context.event("Warning", DELETION_ERROR, str(error)[-_LONGEST_EVENT:])
                raise
        return Result(requeue_after=self._pause)

    async def _release(self, context: _ReleaseContext) -> None:
        await context.remove_finalizer(Finalizer.MANDATORY_MODULE)

    def keys_of_manifest(self, manifest: Object) -> Iterable[ObjectKey]:
        """The ModuleReleaseMeta of a mandatory module's Manifest."""
        metadata = metadata_of(manifest)
        name = _mandatory_name(metadata)
        return (ObjectKey(metadata.namespace, name),) if name else ()


class MandatoryChanges(DelayedChanges):
    """Every managed Kyma when a mandatory ModuleReleaseMeta appears, or, after a delay each, changes."""

    def concerned(self, change: Change, now: float) -> Iterator[tuple[ObjectKey, float]]:
        new = change.new
        version = _version(new) if new is not None else ""
        if new is None or not version or (change.old is not None and _version(change.old) == version):
            return
        module = change.key.name
        for key in self.kymas.keys_by(MANAGED, change.key.namespace):
            if change.old is None:
                yield key, 0.0
            else:
                yield key, upgrade_delay(key, module, version, release=new, now=now, longest=self.longest)


def _version(release: Object) -> str:
    """The mandatory version; empty for a module that Kymas list."""
    mandatory = read(ModuleReleaseMeta, release).spec.mandatory
    return mandatory.version if mandatory is not None else ""


def _mandatory_name(metadata: ObjectMeta) -> str:
    """The mandatory module of a Manifest with this metadata; empty for any other Manifest."""
    labels = metadata.labels
    return labels.get(Label.MODULE_NAME, "") if is_true(labels, Label.MANDATORY_MODULE) else ""


def mandatory_kyma(manifest: Object) -> Iterable[ObjectKey]:
    """Maps the Manifest of a mandatory module to its Kyma, and any other to none."""
    return to_owner(KYMAS)(manifest) if _mandatory_name(metadata_of(manifest)) else ()


def _mandatory_module(manifest: Manifest) -> Iterable[str]:
    name = _mandatory_name(manifest.metadata)
    return (str(ObjectKey(manifest.metadata.namespace, name)),) if name else ()
