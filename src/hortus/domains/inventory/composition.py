"""Puts the controller of ClusterProfiles together for a process that has a `Manager`."""

from __future__ import annotations

from functools import partial

from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.inventory.controller import FIELD_MANAGER, ClusterProfileController
from hortus.domains.inventory.member import MemberStates, RemoteClusters
from hortus.domains.inventory.metrics import InventoryMetrics
from hortus.domains.inventory.registry import FleetRegistry
from hortus.domains.inventory.settings import Settings
from hortus.domains.inventory.shoots import ShootStates, state_of
from hortus.domains.inventory.sources import (
    SECRET_SELECTOR,
    ClusterSource,
    GardenerClusterSource,
    RuntimeSource,
    SecretSource,
)
from hortus.domains.inventory.types import CLUSTER_PROFILES, ClusterProfile
from hortus.engine import (
    Backoff,
    Cache,
    Change,
    EventRecorder,
    Manager,
    TypedCache,
    Watch,
    managed_fields_of,
    read,
    spec_or_metadata_changed,
    without_managed_fields,
)
from hortus.engine.context import Wiring
from hortus.engine.deputies import Deputies
from hortus.engine.kubeconfigs import SECRETS, KubeconfigSecret, sealed
from hortus.engine.remote import KubeconfigRef, RemotePool
from hortus.engine.sources import Source
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, key_of

NAME = "cluster-profile-controller"
"""The controller's name in metrics, logs and events."""
LONGEST_PAUSE = 300.0
"""Seconds between two attempts at most."""


def add_controller(
    manager: Manager,
    *,
    client: Client,
    pool: RemotePool,
    kubeconfigs: Cache,
    shoots: Cache,
    garden_namespace: str,
    watched: str,
    deputies: Deputies,
    settings: Settings,
) -> ClusterProfileController:
    """Add the controller to `manager`. `client` is the management cluster, `pool` leads into the others.

    `watched` is the namespace of the sources, empty for all; `kubeconfigs` holds the Secrets of GardenerClusters, and
    `shoots` at least what `shoots.outline` leaves of the project's Shoots.
    """
    wiring = _wiring(manager, client, settings)
    profiles = wiring.cache.raw
    secrets = manager.cache(SECRETS, namespace=watched, labels=SECRET_SELECTOR, transform=sealed)
    registry = FleetRegistry(_sources(manager, secrets, watched), profiles, settings.namespace, trusts=deputies.trusts)
    members, metrics = RemoteClusters(pool, clock=manager.clock), InventoryMetrics(manager.registry)
    reconciler = ClusterProfileController(
        wiring,
        registry=registry,
        members=members,
        shoots=ShootStates(shoots, garden_namespace),
        secrets=[TypedCache(KubeconfigSecret, cache) for cache in (kubeconfigs, secrets)],
        labels=settings.labels,
        metrics=metrics,
    )
    secrets.subscribe(partial(_on_source_secret, members))
    manager.on_handover(members.shed)
    manager.on_handover(metrics.shed)
    sources: list[Source] = [
        # The Secrets and the sources are complete before the first reconcile.
        Watch(kubeconfigs, to=partial(_of_secret, registry)),
        registry,
        Watch(profiles, when=spec_or_metadata_changed),
        Watch(shoots, to=lambda kept: registry.keys_of_shoot(key_of(kept).name), when=_state_changed, awaited=False),
        *members.watches,
        MemberStates(members),
    ]
    manager.controller(NAME, reconciler, sources=sources, workers=settings.workers, backoff=Backoff(cap=LONGEST_PAUSE))
    return reconciler


def _wiring(manager: Manager, client: Client, settings: Settings) -> Wiring[ClusterProfile]:
    events = EventRecorder(client, component=NAME, clock=manager.clock)
    manager.add_server(events)
    return Wiring(
        kind=ClusterProfile,
        client=client,
        cache=manager.cache(CLUSTER_PROFILES, namespace=settings.namespace, transform=_OWN),
        owned={},
        events=events,
        field_manager=FIELD_MANAGER,
        clock=manager.clock,
        holds=manager.holds,
    )


def _sources(manager: Manager, secrets: Cache, watched: str) -> tuple[ClusterSource, ...]:
    runtimes = manager.cache(RUNTIMES, namespace=watched, transform=without_managed_fields)
    clusters = manager.cache(GARDENER_CLUSTERS, namespace=watched, transform=without_managed_fields)
    return RuntimeSource(runtimes), GardenerClusterSource(clusters), SecretSource(secrets)


def _of_secret(registry: FleetRegistry, secret: Object) -> list[ObjectKey]:
    """The profiles whose kubeconfigs stand in a Secret."""
    found = read(KubeconfigSecret, secret)
    return [key for name in found.data for key in registry.keys_of_place(KubeconfigRef(*found.key, name))]


def _on_source_secret(members: RemoteClusters, change: Change) -> None:
    """Has clusters connected again whose kubeconfigs differ."""
    before, after = (read(KubeconfigSecret, one).data if one else {} for one in (change.old, change.new))
    for name in before.keys() & after.keys():
        if before[name] != after[name]:
            members.credential_changed(KubeconfigRef(*change.key, name))


_OWN = managed_fields_of(FIELD_MANAGER)
"""The same function at each call: caches are shared by their transform."""


def _state_changed(change: Change) -> bool:
    return change.old is None or change.new is None or state_of(change.old) != state_of(change.new)
