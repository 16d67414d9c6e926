"""The modules of a Kyma: their Manifests are written, kept, held back or deleted, and their status follows.

One Manifest at a time for each module, so that a failure of one leaves the others alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from hortus.domains.modules.central.configurations import CentralConfigurations
from hortus.domains.modules.central.overriding import listing
from hortus.domains.modules.kyma.catalog import ModuleCatalog
from hortus.domains.modules.kyma.changes import CLUSTER, WAITS
from hortus.domains.modules.kyma.context import KymaContext
from hortus.domains.modules.kyma.documents import annotate
from hortus.domains.modules.kyma.fanout import cluster_of
from hortus.domains.modules.kyma.holding import UpgradeHolding
from hortus.domains.modules.kyma.manifests import UnusableComponent, is_update_needed, manifest_for, manifest_name
from hortus.domains.modules.kyma.resolution import (
    ModuleRefusal,
    ModuleTerms,
    RefusedModule,
    ResolvedModule,
    removed,
    resolve,
)
from hortus.domains.modules.kyma.seams import Components
from hortus.domains.modules.kyma.status import module_status, problem_of, refused_status, unmanaged_status
from hortus.domains.modules.names import Annotation, FieldOwner, Label, State, is_true
from hortus.domains.modules.registry import Component
from hortus.domains.modules.sources import external_component
from hortus.domains.modules.types import MANIFESTS, Kyma, Manifest, ModuleStatus
from hortus.engine import NotReadable, StepError, TypedCache, generation_changed, labels_changed, read
from hortus.engine.predicates import Predicate, annotation_changed
from hortus.kube import Client
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey

BY_KYMA: Final = "kyma"
"""Index of Manifests by the keys of their Kymas."""


class ModuleErrors(StepError):
    """Modules whose Manifests could not be written; the text names each."""


class _Outcome(NamedTuple):
    status: ModuleStatus
    error: Exception | None = None


class KymaModules:
    """Resolves the modules of Kymas and keeps their Manifests."""

    def __init__(
        self,
        client: Client,
        *,
        manifests: TypedCache[Manifest],
        catalog: ModuleCatalog,
        components: Components,
        holding: UpgradeHolding,
        terms: ModuleTerms,
        sync_namespace: str,
        central: CentralConfigurations,
    ) -> None:
        self._client = client
        self._manifests = manifests
        self._catalog = catalog
        self._components = components
        self._holding = holding
        self._terms = terms
        self._sync_namespace = sync_namespace
        self._central = central
        index_manifests(manifests)

    def manifests_of(self, kyma: ObjectKey) -> list[Manifest]:
        """All Manifests of a Kyma."""
        return self._manifests.by(BY_KYMA, str(kyma))

    async def reconcile(self, context: KymaContext) -> Sequence[ModuleStatus]:
        """Bring the Manifests in order; drafts the modules and returns them. Raises ModuleErrors, KubeError."""
        catalog = self._catalog.at(context.key.namespace)
        overrides = self._central.overrides(context.object.metadata.labels)
        kyma, refused = listing(context.wanted, overrides, catalog)
        context.wanted = kyma
        before = {status.name: status for status in kyma.status.modules}
        resolutions = resolve(kyma, catalog, self._terms, context.now)
        outcomes = list(
            await asyncio.gather(*(self._module(context, one, before.get(one.module.name)) for one in resolutions))
        )
        outcomes += await self._removed(context)
        modules = [_with_refusal(outcome.status, refused) for outcome in outcomes]
        for name in sorted(refused.keys() - {module.name for module in modules}):
            context.warn("ConfigurationRefused", refused[name])
        context.draft_modules(modules)
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if errors:
            raise ModuleErrors("; ".join(map(str, errors)), reason="ModuleErrors")
        return modules

    async def _module(
        self, context: KymaContext, resolution: ResolvedModule | RefusedModule, before: ModuleStatus | None
    ) -> _Outcome:
        if isinstance(resolution, RefusedModule):
            return await self._refused(resolution, before)
        try:
            return await self._resolved(context, resolution, before)
        except (StepError, UnusableComponent) as error:
            return _Outcome(refused_status(_unusable(resolution, error), before))
        except KubeError as error:
            status = refused_status(_unusable(resolution, error), before) if before is None else before
            return _Outcome(status, error)

    async def _component(self, resolved: ResolvedModule) -> Component:
        version = resolved.template.spec.version
        if resolved.external:
            return external_component(resolved.module.name, version)
        return await self._components.component(resolved.source, version)

    async def _refused(self, refused: RefusedModule, before: ModuleStatus | None) -> _Outcome:
        status = refused_status(refused, before)
        if refused.refusal is ModuleRefusal.NOT_ALLOWED and before is not None and before.manifest is not None:
            metadata = before.manifest.metadata
            try:
                await self._delete(ObjectKey(metadata.namespace, metadata.name))
            except KubeError as error:
                return _Outcome(status, error)
        return _Outcome(status)

    async def _resolved(self, context: KymaContext, resolved: ResolvedModule, before: ModuleStatus | None) -> _Outcome:
        kyma = context.wanted
        name = manifest_name(kyma.metadata.name, resolved.component, resolved.module.name)
        current = self._manifests.get(ObjectKey(kyma.metadata.namespace, name))
        if resolved.mandatory and current is not None and is_true(current.metadata.labels, Label.MANDATORY_MODULE):
            # It is written for the release. Two writers would take each other's labels back for ever.
            return _Outcome(_status(resolved, current, before))
        try:
            component = await self._component(resolved)
        except StepError:
            if current is None or not _is_current(current, resolved, before):
                raise
            # A registry that is away takes nothing from a module that is installed.
            return _Outcome(_status(resolved, current, before))
        config = manifest_for(kyma, resolved, component, sync_namespace=self._sync_namespace)
        if (cluster := cluster_of(kyma)) != kyma.metadata.name:
            annotate(config, CLUSTER, cluster)
        wanted = read(Manifest, config)
        if current is not None and (taken := _taken(current, kyma, resolved)):
            return _Outcome(refused_status(RefusedModule(resolved.module, ModuleRefusal.INVALID, taken), None))
        if is_update_needed(current, wanted, resolved.template, before):
            if current is not None and before is not None:
                held = await self._holding.held(context, resolved, before, current, wanted)
                if held is not None:
                    return _Outcome(held)
            written = await self._client.apply(MANIFESTS, config, field_manager=FieldOwner.LIFECYCLE)
            self._manifests.raw.learn(written)
            current = read(Manifest, written)
        if current is not None:
            await self._holding.settle(current)
        return _Outcome(_status(resolved, current, before))

    async def _removed(self, context: KymaContext) -> list[_Outcome]:
        """Delete the Manifests of modules that are listed no more; their status stays until they are gone."""
        listed = {module.name for module in context.wanted.spec.modules}
        outcomes: dict[str, _Outcome] = {}
        known = {status.name: status for status in removed(context.wanted)}
        for manifest in self.manifests_of(context.key):
            labels = manifest.metadata.labels
            name = labels.get(Label.MODULE_NAME, "")
            if name in listed or not name or is_true(labels, Label.MANDATORY_MODULE):
                continue
            error: Exception | None = None
            if manifest.metadata.deletion_timestamp is None:
                try:
                    await self._delete(ObjectKey(manifest.metadata.namespace, manifest.metadata.name))
                except KubeError as problem:
                    error = problem
            status = known.get(name)
            if (
                status is not None
                and status.manifest is not None
                and status.manifest.metadata.name == manifest.metadata.name
            ):
                state = manifest.status.state or State.PROCESSING.value
                outcomes[name] = _Outcome(msgspec.structs.replace(status, state=state), error)
            elif error is not None:
                raise error
        return list(outcomes.values())

    async def _delete(self, key: ObjectKey) -> None:
        manifest = self._manifests.get(key)
        if manifest is None or manifest.metadata.deletion_timestamp is not None:
            return
        try:
            await self._client.delete(MANIFESTS, key.name, key.namespace, uid=manifest.metadata.uid)
        except NotFound:
            return


def _with_refusal(status: ModuleStatus, refused: Mapping[str, str]) -> ModuleStatus:
    """The status with the part of central configuration that is refused, unless it has a message already."""
    if status.message or status.name not in refused:
        return status
    return msgspec.structs.replace(status, message=refused[status.name])


def _outcome_differs(old: Object, new: Object) -> bool:
    return _outcome(old) != _outcome(new)


def _outcome(manifest: Object) -> tuple[str, str]:
    try:
        status = read(Manifest, manifest).status
    except NotReadable:
        return "", ""
    return status.state, problem_of(status)


manifest_matters: Final = (
    generation_changed
    | labels_changed
    | annotation_changed(WAITS)
    | annotation_changed(Annotation.IS_UNMANAGED)
    | Predicate(_outcome_differs)
)
"""The changes of a Manifest that its Kyma shows; a Manifest is written several times on its way to Ready."""


def index_manifests(manifests: TypedCache[Manifest]) -> None:
    """File Manifests by the keys of their Kymas."""
    manifests.add_index(BY_KYMA, _kyma_of)


def _kyma_of(manifest: Manifest) -> Iterable[str]:
    name = manifest.metadata.labels.get(Label.KYMA_NAME)
    return (str(ObjectKey(manifest.metadata.namespace, name)),) if name else ()


def _status(resolved: ResolvedModule, current: Manifest | None, before: ModuleStatus | None) -> ModuleStatus:
    if resolved.module.managed and current is not None:
        return module_status(resolved, current)
    installed = current.spec.version if current is not None and current.spec is not None else ""
    return unmanaged_status(resolved, installed or (before.version if before is not None else ""))


def _is_current(current: Manifest, resolved: ResolvedModule, before: ModuleStatus | None) -> bool:
    """Reports whether the Manifest is that of the resolved version, as far as is known without the registry."""
    template = before.template if before is not None else None
    return (
        current.spec is not None
        and current.spec.version == resolved.template.spec.version
        and current.metadata.labels.get(Label.CHANNEL) == resolved.channel
        and resolved.module.managed
        and template is not None
        and template.metadata.generation == resolved.template.metadata.generation
    )


def _taken(current: Manifest, kyma: Kyma, resolved: ResolvedModule) -> str:
    """The reason for which a Manifest of that name is not this module's; empty where it is."""
    labels = current.metadata.labels
    owner, module = labels.get(Label.KYMA_NAME, ""), labels.get(Label.MODULE_NAME, "")
    if (owner, module) == (kyma.metadata.name, resolved.module.name):
        return ""
    return (
        f"Manifest {current.metadata.name} belongs to module {module} of Kyma {owner}; both need that name, remove "
        "one of them"
    )


def _unusable(resolved: ResolvedModule, error: Exception) -> RefusedModule:
    return RefusedModule(resolved.module, ModuleRefusal.NO_COMPONENT, str(error), resolved.channel, resolved.component)
