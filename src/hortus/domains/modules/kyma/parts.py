"""The parts that the controllers of Kymas and of mandatory modules share, made once in a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import structlog
from prometheus_client import Gauge

from hortus.domains.modules.central.configurations import CentralConfigurations, central_configurations
from hortus.domains.modules.clusters import SECRET_SELECTOR, KymaClusters
from hortus.domains.modules.kyma.catalog import ModuleCatalog
from hortus.domains.modules.kyma.copied import CopiedCrds, PullSecret
from hortus.domains.modules.kyma.copies import ClusterCopies
from hortus.domains.modules.kyma.documents import with_change_time
from hortus.domains.modules.kyma.fanout import index
from hortus.domains.modules.kyma.metrics import KymaMetrics
from hortus.domains.modules.kyma.remote import RemoteKymas
from hortus.domains.modules.kyma.seams import Agents, Components
from hortus.domains.modules.kyma.windows import MaintenancePolicy, WindowPolicyError
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.settings import Settings
from hortus.domains.modules.types import KYMAS, MANIFESTS, MODULE_RELEASE_METAS, MODULE_TEMPLATES, Kyma
from hortus.engine import Cache, EventRecorder, Manager, TypedCache, without_managed_fields
from hortus.engine.context import Wiring
from hortus.engine.deputies import Deputies
from hortus.engine.kinds import KindController
from hortus.engine.kubeconfigs import sealed
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.remote import SECRETS, RemotePool
from hortus.engine.rollouts import RolloutGate
from hortus.kube import Client
from hortus.kube.objects import Resource

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


def clusters_of(manager: Manager, pool: RemotePool, namespace: str, deputies: Deputies) -> KymaClusters:
    """The clusters of Kymas, by the Secrets of a namespace."""
    secrets = manager.cache(SECRETS, namespace=namespace, labels=SECRET_SELECTOR, transform=sealed)
    return KymaClusters(pool, secrets, deputies)


class KymaParts(NamedTuple):
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


class ClusterParts(NamedTuple):
    """The parts that read and copy in the clusters of Kymas."""

    clusters: KymaClusters
    remotes: RemoteKymas
    copies: ClusterCopies
    crds: CopiedCrds
    secret: PullSecret | None


def parts_of(
    manager: Manager,
    client: Client,
    namespace: str,
    components: Components,
    agents: Agents,
    leftovers: LeftoverRecorder,
    requeues: RequeueMetrics,
    gate: RolloutGate,
    settings: Settings,
) -> KymaParts:
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
    return KymaParts(
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


def wiring_of(parts: KymaParts, controller: type[KindController[Any]], cache: Cache, name: str) -> Wiring[Any]:
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


def maintenance_policy(manager: Manager, settings: Settings) -> MaintenancePolicy | None:
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
