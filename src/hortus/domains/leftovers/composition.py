"""Puts the controller of Leftovers together for a process that has a `Manager`."""

from __future__ import annotations

from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.domains.leftovers.controller import HeldClusters, LeftoverController
from hortus.domains.leftovers.following import MOST, ItemWatches
from hortus.domains.leftovers.looking import ClusterWays, ItemLookup
from hortus.domains.leftovers.metrics import LeftoverMetrics
from hortus.engine import (
    Cache,
    Change,
    EventRecorder,
    Manager,
    TypedCache,
    Watch,
    spec_or_metadata_changed,
    wire,
    without_managed_fields,
)
from hortus.engine.remote import RemotePool, RemoteStates
from hortus.kube import Client

NAME = "leftover-controller"
"""The controller's name in metrics, logs and events."""


def add_controller(
    manager: Manager,
    *,
    client: Client,
    garden: Client,
    garden_namespace: str,
    shoots: Cache,
    pool: RemotePool,
    kubeconfigs: Cache,
    fleet_namespace: str,
    watched: str,
    keep: float,
    watches: int = MOST,
) -> LeftoverController:
    """Add it to `manager`. `watched` is the namespace of GardenerClusters, empty for all; `keep` is in seconds.

    `watches` is the greatest number of objects in clusters that are watched.
    """
    events = EventRecorder(client, component=NAME, clock=manager.clock)
    manager.add_server(events)
    wiring = wire(manager, LeftoverController, client=client, events=events, namespace=fleet_namespace)
    clusters = manager.cache(GARDENER_CLUSTERS, namespace=watched, transform=without_managed_fields)
    held = HeldClusters(pool, ItemWatches(pool, most=watches))
    manager.on_handover(held.shed)
    LeftoverMetrics(manager.registry, wiring.cache.raw)
    controller = LeftoverController(
        wiring,
        ways=ClusterWays(TypedCache(GardenerCluster, clusters), kubeconfigs),
        lookup=ItemLookup(client, garden, garden_namespace, shoots=shoots, pool=pool),
        held=held,
        keep=keep,
    )
    manager.controller(
        NAME,
        controller,
        sources=[
            Watch(clusters, to=controller.keys_of_cluster),
            Watch(kubeconfigs, to=controller.keys_of_kubeconfig),
            Watch(shoots, to=controller.keys_of_shoot, when=_came_or_went, awaited=False),
            Watch(wiring.cache.raw, when=spec_or_metadata_changed),
            RemoteStates(pool, to=held.users_of),
            held.items,
        ],
        workers=4,
    )
    return controller


def _came_or_went(change: Change) -> bool:
    return change.old is None or change.new is None
