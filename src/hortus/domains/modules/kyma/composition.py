"""Puts the controllers of Kymas and of mandatory modules together for a process that has a `Manager`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hortus.domains.modules.clusters import KymaClusters
from hortus.domains.modules.kyma.controller import KymaController
from hortus.domains.modules.kyma.copied import CopiedCrds, PullSecret
from hortus.domains.modules.kyma.copies import ClusterCopies
from hortus.domains.modules.kyma.deletion import ClusterWay, KymaDeletion
from hortus.domains.modules.kyma.fanout import spread_of
from hortus.domains.modules.kyma.holding import UpgradeHolding
from hortus.domains.modules.kyma.incluster import InClusterKymaController
from hortus.domains.modules.kyma.mandatory import (
    MandatoryChanges,
    MandatoryDeletion,
    MandatoryInstaller,
    mandatory_kyma,
)
from hortus.domains.modules.kyma.modules import KymaModules
from hortus.domains.modules.kyma.parts import ClusterParts, KymaParts, maintenance_policy, parts_of, wiring_of
from hortus.domains.modules.kyma.pushes import PushedAgain
from hortus.domains.modules.kyma.remote import RemoteKymas
from hortus.domains.modules.kyma.resolution import ModuleTerms
from hortus.domains.modules.kyma.seams import Agents, Components
from hortus.domains.modules.kyma.sources import cluster_sources, control_sources
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.settings import Settings
from hortus.domains.modules.types import Manifest
from hortus.engine import (
    Manager,
    Source,
    TypedCache,
    Watch,
    generation_changed,
    labels_changed,
    spec_or_metadata_changed,
)
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.remote import KubeconfigRef
from hortus.engine.rollouts import RolloutGate
from hortus.kube import Client

NAME: Final = "kyma"
MANDATORY: Final = "mandatory-module-installation"
MANDATORY_DELETION: Final = "mandatory-module-deletion"
"""Names of the controllers in metrics, logs and events."""
_SHORTEST: Final = 1.0
"""Seconds between two looks at the registry, also where each use of a version asks it."""


def add_controllers(
    manager: Manager,
    *,
    client: Client,
    namespace: str,
    clusters: KymaClusters,
    components: Components,
    agents: Agents,
    leftovers: LeftoverRecorder,
    requeues: RequeueMetrics,
    gate: RolloutGate,
    settings: Settings,
    sources: Sequence[Source] = (),
) -> KymaController:
    """Add the controllers to `manager`. `client` is the control plane, `clusters` leads into the others.

    `sources` bring further Kymas to reconcile, such as events of agents.
    """
    parts = parts_of(manager, client, namespace, components, agents, leftovers, requeues, gate, settings)
    _add_mandatory(parts)
    inside = _cluster_parts(parts, clusters)
    modules = _modules(parts)
    deletion = _deletion(parts, modules, ClusterWay(clusters, inside.remotes))
    for shed in (inside.remotes.shed, inside.copies.shed):
        manager.on_handover(shed)
    reconciler = _kyma_controller(parts, inside, modules, deletion)
    _run(parts, reconciler, [*cluster_sources(parts, inside), _pushed_again(parts), *sources])
    return reconciler


def add_own_controllers(
    manager: Manager,
    *,
    client: Client,
    namespace: str,
    components: Components,
    agents: Agents,
    leftovers: LeftoverRecorder,
    requeues: RequeueMetrics,
    gate: RolloutGate,
    settings: Settings,
) -> InClusterKymaController:
    """Add the controllers of the in-cluster form, in which `client` is the one cluster."""
    parts = parts_of(manager, client, namespace, components, agents, leftovers, requeues, gate, settings)
    _add_mandatory(parts)
    modules = _modules(parts)
    reconciler = InClusterKymaController(
        wiring_of(parts, InClusterKymaController, parts.caches.kymas, NAME),
        modules=modules,
        deletion=_deletion(parts, modules, None),
        metrics=parts.metrics,
        requeues=requeues,
        requeue=settings.kyma.requeue,
    )
    _run(parts, reconciler, control_sources(parts))
    return reconciler


def _cluster_parts(parts: KymaParts, clusters: KymaClusters) -> ClusterParts:
    manager, settings = parts.manager, parts.settings
    copies = ClusterCopies(manager.clock, period=settings.kyma.comparison, spread=lambda key: spread_of(*key))
    clusters.pool.on_recreated(lambda place: _recreated(copies, clusters, place))
    return ClusterParts(
        clusters,
        RemoteKymas(clusters, namespace=settings.sync_namespace),
        copies,
        CopiedCrds(manager),
        PullSecret(manager, parts.namespace, settings) if settings.pull_secret else None,
    )


def _modules(parts: KymaParts) -> KymaModules:
    client, caches, catalog, settings = parts.client, parts.caches, parts.catalog, parts.settings
    return KymaModules(
        client,
        manifests=TypedCache(Manifest, caches.manifests),
        catalog=catalog,
        components=parts.components,
        holding=UpgradeHolding(client, caches.manifests, catalog, parts.gate, longest=settings.kyma.rollout_delay),
        terms=ModuleTerms(
            settings.kyma.restricted, maintenance_policy(parts.manager, settings), downgrades=settings.kyma.downgrades
        ),
        sync_namespace=settings.sync_namespace,
        central=parts.central,
    )


def _deletion(parts: KymaParts, modules: KymaModules, way: ClusterWay | None) -> KymaDeletion:
    deletion = KymaDeletion(
        way=way,
        modules=modules,
        agents=parts.agents,
        metrics=parts.metrics,
        requeues=parts.requeues,
        leftovers=parts.leftovers,
        detach_after=parts.settings.kyma.detach_after,
    )
    parts.manager.on_handover(deletion.shed)
    return deletion


def _kyma_controller(
    parts: KymaParts, inside: ClusterParts, modules: KymaModules, deletion: KymaDeletion
) -> KymaController:
    settings = parts.settings.kyma
    return KymaController(
        wiring_of(parts, KymaController, parts.caches.kymas, NAME),
        clusters=inside.clusters,
        remotes=inside.remotes,
        copies=inside.copies,
        catalog=parts.catalog,
        modules=modules,
        agents=parts.agents,
        deletion=deletion,
        metrics=parts.metrics,
        requeues=parts.requeues,
        crds=inside.crds.copies,
        pull_secret=inside.secret.copies if inside.secret is not None else None,
        requeue=settings.requeue,
        windows_from_remote=settings.windows_from_cluster,
    )


def _run(parts: KymaParts, reconciler: KymaController | InClusterKymaController, sources: Sequence[Source]) -> None:
    settings = parts.settings
    parts.manager.controller(NAME, reconciler, sources=sources, workers=settings.kyma.workers, backoff=settings.backoff)


def _pushed_again(parts: KymaParts) -> PushedAgain:
    manager = parts.manager
    pushed = PushedAgain(
        parts.components,
        TypedCache(Manifest, parts.caches.manifests),
        clock=manager.clock,
        period=max(parts.settings.registry.revalidation, _SHORTEST),
    )
    manager.add("versions pushed again", pushed.run, leader_only=manager.shards is None)
    return pushed


def _add_mandatory(parts: KymaParts) -> None:
    manager, caches, settings = parts.manager, parts.caches, parts.settings
    installer = MandatoryInstaller(
        wiring_of(parts, MandatoryInstaller, caches.kymas, MANDATORY),
        catalog=parts.catalog,
        components=parts.components,
        manifests=TypedCache(Manifest, caches.manifests),
        metrics=parts.metrics,
        settings=settings.kyma,
        sync_namespace=settings.sync_namespace,
    )
    manager.on_handover(installer.shed)
    manager.controller(
        MANDATORY,
        installer,
        sources=[
            Watch(caches.templates, to=lambda template: (), awaited=True),
            MandatoryChanges(caches.releases, caches.kymas, longest=settings.kyma.rollout_delay),
            Watch(caches.manifests, to=mandatory_kyma, when=generation_changed),
            Watch(caches.kymas, when=generation_changed | labels_changed),
        ],
        workers=settings.kyma.mandatory_workers,
        backoff=settings.backoff,
    )
    _add_mandatory_deletion(parts)


def _add_mandatory_deletion(parts: KymaParts) -> None:
    manager, caches, settings = parts.manager, parts.caches, parts.settings
    deletion = MandatoryDeletion(
        wiring_of(parts, MandatoryDeletion, caches.releases, MANDATORY_DELETION),
        manifests=TypedCache(Manifest, caches.manifests),
        pause=settings.kyma.mandatory_deletion_requeue,
    )
    manager.controller(
        MANDATORY_DELETION,
        deletion,
        sources=[
            Watch(caches.manifests, to=deletion.keys_of_manifest),
            Watch(caches.releases, when=spec_or_metadata_changed),
        ],
        workers=settings.kyma.mandatory_deletion_workers,
        backoff=settings.backoff,
    )


def _recreated(copies: ClusterCopies, clusters: KymaClusters, place: KubeconfigRef) -> None:
    """Another cluster answers there, which holds no copies."""
    for kyma in clusters.kymas_at(place):
        copies.forget(kyma)
