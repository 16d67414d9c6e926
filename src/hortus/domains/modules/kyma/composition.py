"""Puts the controllers of Kymas and of mandatory modules together for a process that has a `Manager`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog
from prometheus_client import Gauge

from hortus.domains.modules.clusters import SECRET_SELECTOR, KymaClusters
from hortus.domains.modules.kyma.catalog import ModuleCatalog
from hortus.domains.modules.kyma.changes import MODULE, WAITS
from hortus.domains.modules.kyma.controller import KymaController
from hortus.domains.modules.kyma.copies import ClusterCopies, CopySet
from hortus.domains.modules.kyma.deletion import KymaDeletion
from hortus.domains.modules.kyma.documents import CRDS, crd_copies, secret_copy, with_change_time
from hortus.domains.modules.kyma.fanout import BY_CLUSTER, ReleaseChanges, index, kymas_of_template, spread_of
from hortus.domains.modules.kyma.holding import UpgradeHolding
from hortus.domains.modules.kyma.mandatory import (
    MandatoryChanges,
    MandatoryDeletion,
    MandatoryInstaller,
    mandatory_kyma,
)
from hortus.domains.modules.kyma.metrics import KymaMetrics
from hortus.domains.modules.kyma.modules import KymaModules
from hortus.domains.modules.kyma.remote import COPIED_CRDS, RemoteKymas
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
    Actor,
    Backoff,
    Cache,
    EventRecorder,
    Manager,
    Source,
    StepError,
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
from hortus.kube.objects import Object, ObjectKey, Resource

NAME: Final = "kyma"
MANDATORY: Final = "mandatory-module"
MANDATORY_DELETION: Final = "mandatory-module-deletion"
"""Names of the controllers in metrics, logs and events."""
BACKOFF: Final = Backoff(first=5.0, cap=30.0)
"""failure-base-delay and failure-max-delay of the Go system."""

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
    caches: KymaCaches
    catalog: ModuleCatalog
    metrics: KymaMetrics
    settings: Settings


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
    caches = caches_of(manager, namespace)
    catalog = ModuleCatalog(
        caches.releases,
        caches.templates,
        restricted=settings.kyma.restricted,
        sync_namespace=settings.sync_namespace,
    )
    parts = _Parts(caches, catalog, KymaMetrics(manager.registry), settings)
    manager.on_handover(parts.metrics.shed)
    index(TypedCache(Kyma, caches.kymas))
    _add_mandatory(manager, client, parts, components)
    return _add_kyma(
        manager,
        client,
        parts,
        namespace=namespace,
        clusters=clusters,
        components=components,
        agents=agents,
        leftovers=leftovers,
        requeues=requeues,
        gate=gate,
        sources=sources,
    )


def _add_kyma(
    manager: Manager,
    client: Client,
    parts: _Parts,
    *,
    namespace: str,
    clusters: KymaClusters,
    components: Components,
    agents: Agents,
    leftovers: LeftoverRecorder,
    requeues: RequeueMetrics,
    gate: RolloutGate,
    sources: Sequence[Source],
) -> KymaController:
    caches, catalog, metrics, settings = parts
    remotes = RemoteKymas(clusters, namespace=settings.sync_namespace)
    copies = ClusterCopies(manager.clock, period=settings.kyma.comparison, spread=lambda key: spread_of(*key))
    clusters.pool.on_recreated(lambda place: _recreated(copies, clusters, place))
    modules = KymaModules(
        client,
        manifests=TypedCache(Manifest, caches.manifests),
        catalog=catalog,
        components=components,
        holding=UpgradeHolding(client, caches.manifests, catalog, gate, longest=settings.kyma.rollout_delay),
        terms=ModuleTerms(settings.kyma.restricted, _windows(manager, settings)),
        sync_namespace=settings.sync_namespace,
    )
    deletion = KymaDeletion(
        clusters=clusters,
        remotes=remotes,
        modules=modules,
        agents=agents,
        metrics=metrics,
        requeues=requeues,
        leftovers=leftovers,
        detach_after=settings.kyma.detach_after,
    )
    secret = PullSecret(manager, namespace, settings) if settings.pull_secret else None
    crds = CopiedCrds(manager)
    reconciler = KymaController(
        _wiring(manager, KymaController, client, caches.kymas, NAME),
        clusters=clusters,
        remotes=remotes,
        copies=copies,
        catalog=catalog,
        modules=modules,
        agents=agents,
        deletion=deletion,
        metrics=metrics,
        requeues=requeues,
        crds=crds.copies,
        pull_secret=secret.copies if secret is not None else None,
        requeue=settings.kyma.requeue,
        windows_from_remote=settings.kyma.windows_from_cluster,
    )
    copied = [*crds.caches, *([secret.cache] if secret is not None else [])]
    for shed in (remotes.shed, copies.shed, deletion.shed):
        manager.on_handover(shed)
    manager.controller(
        NAME,
        reconciler,
        sources=[
            # The objects that the initial reconciles read are listed first.
            Watch(clusters.secrets, to=clusters.kymas_of),
            *(Watch(cache, to=lambda found: list(caches.kymas)) for cache in copied),
            Watch(caches.templates, to=kymas_of_template(caches.kymas), when=lambda change: not change.initial),
            ReleaseChanges(caches.releases, caches.kymas, longest=settings.kyma.rollout_delay),
            Watch(caches.manifests, to=to_owner(KYMAS)),
            gate.source(
                MODULE,
                keys_of=lambda cluster: caches.kymas.keys_by(BY_CLUSTER, cluster),
                waiting=lambda: _waiting(caches.manifests),
            ),
            Watch(caches.kymas, when=spec_or_metadata_changed),
            remotes.watch,
            RemoteStates(clusters.pool, to=remotes.kymas_at),
            *sources,
        ],
        workers=settings.kyma.workers,
        backoff=BACKOFF,
    )
    return reconciler


def _add_mandatory(manager: Manager, client: Client, parts: _Parts, components: Components) -> None:
    caches, catalog, metrics, settings = parts
    installer = MandatoryInstaller(
        _wiring(manager, MandatoryInstaller, client, caches.kymas, MANDATORY),
        catalog=catalog,
        components=components,
        manifests=TypedCache(Manifest, caches.manifests),
        metrics=metrics,
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
        backoff=BACKOFF,
    )
    deletion = MandatoryDeletion(
        _wiring(manager, MandatoryDeletion, client, caches.releases, MANDATORY_DELETION),
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
        backoff=BACKOFF,
    )


def _wiring(
    manager: Manager, controller: type[KindController[Any]], client: Client, cache: Cache, name: str
) -> Wiring[Any]:
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


class CopiedCrds:
    """The CRDs that each cluster gets, as they are in the control plane."""

    def __init__(self, manager: Manager) -> None:
        self.caches = [
            manager.cache(CRDS, fields=f"metadata.name={name}", transform=without_managed_fields)
            for name in COPIED_CRDS
        ]
        self._known: tuple[list[Object], CopySet] | None = None

    def copies(self) -> CopySet:
        """The copies for a cluster. Raises StepError while a CRD is missing."""
        found = [cache.get(ObjectKey("", name)) for name, cache in zip(COPIED_CRDS, self.caches, strict=True)]
        crds = [crd for crd in found if crd is not None]
        if len(crds) < len(COPIED_CRDS):
            missing = ", ".join(name for name, crd in zip(COPIED_CRDS, found, strict=True) if crd is None)
            raise StepError(
                f"the control plane lacks the CRDs {missing}; install them", reason="CrdMissing", actor=Actor.OPERATOR
            )
        if self._known is None or any(old is not new for old, new in zip(self._known[0], crds, strict=True)):
            self._known = crds, crd_copies(crds)
        return self._known[1]


class PullSecret:
    """The Secret for pulling images that each cluster gets."""

    def __init__(self, manager: Manager, namespace: str, settings: Settings) -> None:
        self._key = ObjectKey(namespace, settings.pull_secret)
        self._target = settings.sync_namespace
        self.cache = manager.cache(
            SECRETS,
            namespace=namespace,
            fields=f"metadata.name={settings.pull_secret}",
            transform=without_managed_fields,
        )
        self._known: tuple[Object, CopySet] | None = None

    def copies(self) -> CopySet:
        """The copy for a cluster. Raises StepError while the Secret is missing."""
        secret = self.cache.get(self._key)
        if secret is None:
            raise StepError(
                f"Secret {self._key} of --skr-image-pull-secret does not exist; create it",
                reason="PullSecretMissing",
                actor=Actor.OPERATOR,
            )
        if self._known is None or self._known[0] is not secret:
            self._known = secret, secret_copy(secret, SECRETS, self._target)
        return self._known[1]
