"""Puts the ClusterAccess controller together for a process that has a `Manager`."""

from __future__ import annotations

from hortus.domains.access.controller import ClusterAccessController
from hortus.domains.access.inside import Clusters
from hortus.domains.access.issuing import Proof
from hortus.domains.access.lookup import ClusterLookup
from hortus.domains.access.metrics import AccessMetrics
from hortus.domains.access.settings import Settings
from hortus.domains.access.types import CLUSTER_ACCESSES, MANAGER, Annotation, Label
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import (
    Backoff,
    Cache,
    Change,
    EventRecorder,
    Manager,
    Watch,
    spec_or_metadata_changed,
    to_owner,
    without_managed_fields,
)
from hortus.engine.kubeconfigs import sealed
from hortus.engine.remote import SECRETS, RemotePool, RemoteStates
from hortus.kube import Client

NAME = "cluster-access-controller"
"""The controller's name in metrics, logs and events."""
LONGEST_PAUSE = 300.0
"""Seconds between two attempts at most."""


def add_controller(
    manager: Manager, *, client: Client, pool: RemotePool, kubeconfigs: Cache, settings: Settings
) -> ClusterAccessController:
    """Add the controller to `manager`. `client` is the management cluster, `pool` leads into the others.

    `kubeconfigs` holds the Secrets of GardenerClusters, with or without their values.
    """
    accesses = manager.cache(CLUSTER_ACCESSES, namespace=settings.namespace, transform=without_managed_fields)
    clusters = manager.cache(GARDENER_CLUSTERS, namespace=settings.namespace, transform=without_managed_fields)
    own = f"{Label.REQUEST},{Label.MANAGED_BY}={MANAGER}"
    secrets = manager.cache(SECRETS, namespace=settings.namespace, labels=own, transform=sealed)
    events = EventRecorder(client, component=NAME, clock=manager.clock)
    manager.add_server(events)
    lookup = ClusterLookup(client, accesses=accesses, clusters=clusters, kubeconfigs=kubeconfigs)
    inside = Clusters(pool, clock=manager.clock)
    reconciler = ClusterAccessController(
        client=client,
        accesses=accesses,
        secrets=secrets,
        lookup=lookup,
        clusters=inside,
        proof=Proof(timeout=settings.cluster_timeout, trust=pool.settings.trust, deny=pool.settings.deny),
        settings=settings,
        metrics=AccessMetrics(manager.registry),
        events=events,
        clock=manager.clock,
    )
    if (shards := manager.shards) is not None:
        shards.on_gain(lambda *_: inside.shed(shards.holds))
    manager.controller(
        NAME,
        reconciler,
        sources=[
            # What the requests' initial reconciles look up comes first.
            Watch(clusters, to=reconciler.keys_of_cluster, when=_matters),
            Watch(kubeconfigs, to=lookup.requests_of_kubeconfig),
            Watch(secrets, to=to_owner(CLUSTER_ACCESSES)),
            Watch(accesses, when=spec_or_metadata_changed),
            *inside.watches.values(),
            RemoteStates(pool, to=inside.users_of),
        ],
        workers=settings.workers,
        backoff=Backoff(cap=LONGEST_PAUSE),
    )
    return reconciler


def _matters(change: Change) -> bool:
    """A GardenerCluster that came or went, names another Secret, or allows other namespaces."""
    if change.old is None or change.new is None:
        return True
    old, new = change.old, change.new
    granted = [(one["metadata"].get("annotations") or {}).get(Annotation.ALLOWED_NAMESPACES) for one in (old, new)]
    return bool(old["spec"] != new["spec"] or granted[0] != granted[1] or _uid(old) != _uid(new))


def _uid(cluster: dict[str, dict[str, object]]) -> object:
    return cluster["metadata"].get("uid")
