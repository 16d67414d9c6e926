"""Puts the controllers of Kymas and of mandatory modules together for a process that has a `Manager`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog
from prometheus_client import Gauge

from hortus.domains.modules.central.configurations import CentralConfigurations, central_configurations
from hortus.domains.modules.clusters import SECRET_SELECTOR, KymaClusters
from hortus.domains.modules.kyma.catalog import ModuleCatalog
from hortus.domains.modules.kyma.changes import MODULE, WAITS
from hortus.domains.modules.kyma.controller import KymaController
from hortus.domains.modules.kyma.copied import CopiedCrds, PullSecret
from hortus.domains.modules.kyma.copies import ClusterCopies
from hortus.domains.modules.kyma.deletion import ClusterWay, KymaDeletion
from hortus.domains.modules.kyma.documents import with_change_time
from hortus.domains.modules.kyma.fanout import BY_CLUSTER, ReleaseChanges, index, kymas_of_template, spread_of
from hortus.domains.modules.kyma.holding import UpgradeHolding
from hortus.domains.modules.kyma.incluster import InClusterKymaController
from hortus.domains.modules.kyma.mandatory import (
    MandatoryChanges,
    MandatoryDeletion,
    MandatoryInstaller,
    mandatory_kyma,
)
from hortus.domains.modules.kyma.metrics import KymaMetrics
from hortus.domains.modules.kyma.modules import KymaModules, manifest_matters
from hortus.domains.modules.kyma.remote import RemoteKymas
from hortus.domains.modules.kyma.resolution import ModuleTerms
from hortus.domains.modules.kyma.seams import Agents, Components
from hortus.domains.modules.kyma.windows import MaintenancePolicy, WindowPolicyError
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.settings import Settings
from hortus.domains.modules.types import (
    KYMAS,
    MANIFESTS,
    MODULE_RELEASE_METAS,
    MODULE_TEMPLATES,
    Kyma,
    Manifest,
)
from hortus.engine import (
    Cache,
    EventRecorder,
    Manager,
    Priority,
    Source,
    TypedCache,
    Watch,
    generation_changed,
    labels_changed,
    metadata_of,
    spec_or_metadata_changed,
    to_owner,
    without_managed_fields,
)
from hortus.engine.context import Wiring
from hortus.engine.kinds import KindController
from hortus.engine.kubeconfigs import sealed
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.remote import SECRETS, KubeconfigRef, RemotePool, RemoteStates
from hortus.engine.rollouts import RolloutGate
from hortus.kube import Client
from hortus.kube.objects import ObjectKey, Resource

NAME: Final = "kyma"
MANDATORY: Final = "mandatory-module-installation"
MANDATORY_DELETION: Final = "mandatory-module-deletion"
"""Names of the controllers in metrics, logs and events."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class KymaCaches(NamedTuple):
    """The objects of the control plane that these controllers read."""

    kymas: Cache
    manifests: Cache
    releases: Cache
    templates: Cache


def caches_of(manager: Manager, namespace: str) -> KymaCaches:
    """The caches, shared with the other controllers of the process."""

    def cache(resource: Resource) -> Cache:
        return manager.cache(resource, namespace=namespace, transform=without_managed_fields)

    return KymaCaches(
        cache(KYMAS),
        cache(MANIFESTS),
        manager.cache(MODULE_RELEASE_METAS, namespace=namespace, transform=with_change_time),
        cache(MODULE_TEMPLATES),
    )


def clusters_of(manager: Manager, pool: RemotePool, namespace: str) -> KymaClusters:
    """The clusters of Kymas, by the Secrets of a namespace."""
    return KymaClusters(pool, manager.cache(SECRETS, namespace=namespace, labels=SECRET_SELECTOR, transform=sealed))


class _Parts(NamedTuple):
    """The parts that the controllers of Kymas and of mandatory modules share."""

    manager: Manager
    client: Client
    """The control plane."""
    namespace: str
    components: Components
    agents: Agents
    leftovers: LeftoverRecorder
    requeues: RequeueMetrics
    gate: RolloutGate
    settings: Settings
    caches: KymaCaches
    catalog: ModuleCatalog
    metrics: KymaMetrics
    central: CentralConfigurations


class _ClusterParts(NamedTuple):
    """The parts that read and copy in the clusters of Kymas."""

    clusters: KymaClusters
    remotes: RemoteKymas
    copies: ClusterCopies
    crds: CopiedCrds
    secret: PullSecret | None


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
    parts = _parts(manager, client, namespace, components, agents, leftovers, requeues, gate, settings)
    _add_mandatory(parts)
    inside = _cluster_parts(parts, clusters)
    modules = _modules(parts)
    deletion = _deletion(parts, modules, ClusterWay(clusters, inside.remotes))
    for shed in (inside.remotes.shed, inside.copies.shed):
        manager.on_handover(shed)
    reconciler = _kyma_controller(parts, inside, modules, deletion)
    _run(parts, reconciler, [*_cluster_sources(parts, inside), *sources])
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
    parts = _parts(manager, client, namespace, components, agents, leftovers, requeues, gate, settings)
    _add_mandatory(parts)
    modules = _modules(parts)
    reconciler = InClusterKymaController(
        _wiring(parts, InClusterKymaController, parts.caches.kymas, NAME),
        modules=modules,
        deletion=_deletion(parts, modules, None),
        metrics=parts.metrics,
        requeues=requeues,
        requeue=settings.kyma.requeue,
    )
    _run(parts, reconciler, _control_sources(parts))
    return reconciler


def _parts(
    manager: Manager,
    client: Client,
    namespace: str,
    components: Components,
    agents: Agents,
    leftovers: LeftoverRecorder,
    requeues: RequeueMetrics,
    gate: RolloutGate,
    settings: Settings,
) -> _Parts:
    caches = caches_of(manager, namespace)
    catalog = ModuleCatalog(
        caches.releases,
        caches.templates,
        restricted=settings.kyma.restricted,
        sync_namespace=settings.sync_namespace,
    )
    metrics = KymaMetrics(manager.registry)
    manager.on_handover(metrics.shed)
    index(TypedCache(Kyma, caches.kymas))
    return _Parts(
        manager,
        client,
        namespace,
        components,
        agents,
        leftovers,
        requeues,
        gate,
        settings,
        caches,
        catalog,
        metrics,
        central_configurations(manager, namespace, settings),
    )


def _cluster_parts(parts: _Parts, clusters: KymaClusters) -> _ClusterParts:
    manager, settings = parts.manager, parts.settings
    copies = ClusterCopies(manager.clock, period=settings.kyma.comparison, spread=lambda key: spread_of(*key))
    clusters.pool.on_recreated(lambda place: _recreated(copies, clusters, place))
    return _ClusterParts(
        clusters,
        RemoteKymas(clusters, namespace=settings.sync_namespace),
        copies,
        CopiedCrds(manager),
        PullSecret(manager, parts.namespace, settings) if settings.pull_secret else None,
    )


def _modules(parts: _Parts) -> KymaModules:
    client, caches, catalog, settings = parts.client, parts.caches, parts.catalog, parts.settings
    return KymaModules(
        client,
        manifests=TypedCache(Manifest, caches.manifests),
        catalog=catalog,
        components=parts.components,
        holding=UpgradeHolding(client, caches.manifests, catalog, parts.gate, longest=settings.kyma.rollout_delay),
        terms=ModuleTerms(
            settings.kyma.restricted, _windows(parts.manager, settings), downgrades=settings.kyma.downgrades
        ),
        sync_namespace=settings.sync_namespace,
        central=parts.central,
    )


def _deletion(parts: _Parts, modules: KymaModules, way: ClusterWay | None) -> KymaDeletion:
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
    parts: _Parts, inside: _ClusterParts, modules: KymaModules, deletion: KymaDeletion
) -> KymaController:
    settings = parts.settings.kyma
    return KymaController(
        _wiring(parts, KymaController, parts.caches.kymas, NAME),
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


def _run(parts: _Parts, reconciler: KymaController | InClusterKymaController, sources: Sequence[Source]) -> None:
    settings = parts.settings
    parts.manager.controller(NAME, reconciler, sources=sources, workers=settings.kyma.workers, backoff=settings.backoff)


def _cluster_sources(parts: _Parts, inside: _ClusterParts) -> list[Source]:
    """The Kymas that a change in their clusters, of the way into them or of what is copied concerns."""
    clusters, remotes, kymas = inside.clusters, inside.remotes, parts.caches.kymas
    copied = [*inside.crds.caches, *([inside.secret.cache] if inside.secret is not None else [])]
    return [
        # The objects that the initial reconciles read are listed first.
        Watch(clusters.secrets, to=clusters.kymas_of),
        *(Watch(cache, to=lambda found: list(kymas), priority=Priority.RETRY) for cache in copied),
        *_control_sources(parts),
        remotes.watch,
        RemoteStates(clusters.pool, to=remotes.kymas_at),
    ]


def _control_sources(parts: _Parts) -> list[Source]:
    """The Kymas that a change of the control plane's own objects concerns."""
    caches = parts.caches
    return [
        Watch(
            caches.templates,
            to=kymas_of_template(caches.kymas),
            when=lambda change: not change.initial,
            priority=Priority.RETRY,
        ),
        ReleaseChanges(
            caches.releases,
            caches.kymas,
            longest=parts.settings.kyma.rollout_delay,
            governs=lambda module: parts.gate.governs(MODULE, module),
        ),
        # Reports of modules come after the edits of users, and several of one Kyma are one reconcile.
        Watch(caches.manifests, to=to_owner(KYMAS), when=manifest_matters, priority=Priority.RETRY),
        parts.gate.source(
            MODULE,
            keys_of=lambda cluster: caches.kymas.keys_by(BY_CLUSTER, cluster),
            waiting=lambda: _waiting(caches.manifests),
        ),
        *_configured(parts),
        Watch(caches.kymas, when=spec_or_metadata_changed),
    ]


def _configured(parts: _Parts) -> list[Source]:
    """All Kymas, since a selector may match any, when central configuration changes."""
    configurations, kymas = parts.central.cache, parts.caches.kymas
    return (
        [Watch(configurations, to=lambda found: list(kymas), priority=Priority.RETRY)]
        if configurations is not None
        else []
    )


def _add_mandatory(parts: _Parts) -> None:
    manager, caches, settings = parts.manager, parts.caches, parts.settings
    installer = MandatoryInstaller(
        _wiring(parts, MandatoryInstaller, caches.kymas, MANDATORY),
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


def _add_mandatory_deletion(parts: _Parts) -> None:
    manager, caches, settings = parts.manager, parts.caches, parts.settings
    deletion = MandatoryDeletion(
        _wiring(parts, MandatoryDeletion, caches.releases, MANDATORY_DELETION),
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


def _wiring(parts: _Parts, controller: type[KindController[Any]], cache: Cache, name: str) -> Wiring[Any]:
    manager, client = parts.manager, parts.client
    events = EventRecorder(client, component=name, clock=manager.clock)
    manager.add_server(events)
    return Wiring(
        kind=controller.kind,
        client=client,
        cache=cache,
        owned={},
        events=events,
        field_manager=controller.field_manager,
        clock=manager.clock,
        holds=manager.holds,
        applies_status=controller.applies_status,
    )


def _waiting(manifests: Cache) -> Iterator[ObjectKey]:
    """The Kymas with a module that waits for a rollout."""
    for manifest in manifests.values():
        if WAITS in metadata_of(manifest).annotations:
            yield from to_owner(KYMAS)(manifest)


def _recreated(copies: ClusterCopies, clusters: KymaClusters, place: KubeconfigRef) -> None:
    """Another cluster answers there, which holds no copies."""
    for kyma in clusters.kymas_at(place):
        copies.forget(kyma)


def _windows(manager: Manager, settings: Settings) -> MaintenancePolicy | None:
    """The maintenance policy, read once; None, and a metric reports it, where it cannot be read."""
    read_well = Gauge(
        "lifecycle_mgr_maintenance_window_config_read_success",
        "1 when the maintenance policy was read.",
        registry=manager.registry,
    )
    path = Path(settings.kyma.window_policy)
    try:
        policy = MaintenancePolicy.read(path.read_bytes(), minimum=settings.kyma.window_minimum)
    except (OSError, WindowPolicyError) as error:
        _log.warning("the maintenance policy cannot be read", path=str(path), error=str(error))
        return None
    read_well.set(1)
    return policy
