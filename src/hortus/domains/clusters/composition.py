"""Puts this domain's controllers together for a process that has a `Manager`."""

from __future__ import annotations

from hortus.domains.clusters.connecting import Connecting
from hortus.domains.clusters.controller import RuntimeController
from hortus.domains.clusters.conversion import Conversion
from hortus.domains.clusters.creation import Creation
from hortus.domains.clusters.garden import CLOUD_PROFILES, Garden
from hortus.domains.clusters.inside import KubeconfigWorkloads, Workloads
from hortus.domains.clusters.metrics import RuntimeMetrics
from hortus.domains.clusters.operatoraccess import OperatorAccess
from hortus.domains.clusters.patching import Patching
from hortus.domains.clusters.retirement import Retirement
from hortus.domains.clusters.settings import Settings
from hortus.domains.clusters.shoot import profile_outline
from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.clusters.visit import Desk
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import (
    Cache,
    Change,
    EventRecorder,
    Manager,
    Watch,
    spec_or_metadata_changed,
    without_managed_fields,
)
from hortus.kube import Client

NAME = "runtime-controller"
"""The controller's name in metrics, logs and events."""


def add_controllers(
    manager: Manager,
    *,
    client: Client,
    garden: Client,
    shoots: Cache,
    settings: Settings,
    workloads: Workloads | None = None,
) -> RuntimeController:
    """Add them to `manager`. `client` is the management cluster, `garden` the Gardener API.

    `shoots` holds at least what `outline` leaves of the project's Shoots. `workloads` leads into the clusters; by
    default by the kubeconfigs in their Secrets.
    """
    runtimes = manager.cache(RUNTIMES, namespace=settings.namespace, transform=without_managed_fields)
    clusters = manager.cache(GARDENER_CLUSTERS, namespace=settings.namespace, transform=without_managed_fields)
    if workloads is None:
        workloads = KubeconfigWorkloads(client, timeout=settings.cluster_timeout, plain_http=settings.plain_http)
    events = EventRecorder(client, component=NAME, clock=manager.clock)
    manager.add_server(events)
    metrics = RuntimeMetrics(manager.registry)
    desk = Desk(client=client, runtimes=runtimes, events=events, metrics=metrics, clock=manager.clock)
    place = Garden(garden, settings.garden_namespace, shoots)
    profiles = None
    if settings.check_profiles:
        profiles = manager.caches_of(garden).get(CLOUD_PROFILES, transform=profile_outline)
    conversion = _conversion(client, workloads, settings, profiles)
    reconciler = RuntimeController(
        client=client,
        runtimes=runtimes,
        garden=place,
        desk=desk,
        metrics=metrics,
        creation=Creation(place, conversion),
        patching=Patching(client=client, runtimes=runtimes, garden=place, conversion=conversion, clock=manager.clock),
        connecting=Connecting(
            client=client,
            clusters=clusters,
            garden=place,
            workloads=workloads,
            default_oidc=settings.configuration.cluster.shared_tenant.as_object(),
            clock=manager.clock,
        ),
        retirement=Retirement(
            client=client,
            clusters=clusters,
            garden=place,
            structured_authentication=settings.structured_authentication,
            unexpected=metrics.unexpected_stop,
        ),
    )
    manager.controller(
        NAME,
        reconciler,
        sources=[
            # GardenerClusters and Shoots first: the Runtimes' initial reconciles look them up.
            Watch(clusters, to=reconciler.keys_of_cluster, when=_connection_changed),
            Watch(shoots, to=reconciler.keys_of_shoot, when=_facts_changed, awaited=False),
            Watch(runtimes, when=spec_or_metadata_changed),
            Watch(runtimes, to=reconciler.keys_of_rivals, when=_gone),
        ],
        workers=settings.workers,
    )
    return reconciler


def _conversion(client: Client, workloads: Workloads, settings: Settings, profiles: Cache | None) -> Conversion:
    config_map = settings.configuration.converter.kubernetes.api_server.acl.config_map_name
    return Conversion(
        configuration=settings.configuration,
        tenants=settings.tenants,
        workloads=workloads,
        access=OperatorAccess(client, config_map, enabled=settings.acl),
        audit_log_mandatory=settings.audit_log_mandatory,
        structured_authentication=settings.structured_authentication,
        ignore_removed_zones=settings.ignore_removed_zones,
        profiles=profiles,
    )


def _facts_changed(change: Change) -> bool:
    """Anything but the progress of an operation."""
    return change.old is None or change.new is None or change.old["live"] != change.new["live"]


def _connection_changed(change: Change) -> bool:
    if change.old is None or change.new is None:
        return True
    return _state(change.old) != _state(change.new)


def _state(cluster: dict[str, object]) -> object:
    status = cluster.get("status")
    return status.get("state") if isinstance(status, dict) else None


def _gone(change: Change) -> bool:
    return change.new is None
