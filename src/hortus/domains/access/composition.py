"""Puts the ClusterAccess controller together for a process that has a `Manager`."""

from __future__ import annotations

from hortus.domains.access.controller import ClusterAccessController
from hortus.domains.access.inside import Clusters
from hortus.domains.access.issuing import AccessIssuer
from hortus.domains.access.lookup import ClusterLookup
from hortus.domains.access.metrics import AccessMetrics
from hortus.domains.access.proof import LONGEST_ANSWER, PermissionProof
from hortus.domains.access.settings import Settings
from hortus.domains.access.types import CLUSTER_ACCESSES, MANAGER, ClusterAccess, Label
from hortus.domains.access.vault import Vault
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.engine import (
    Backoff,
    Cache,
    EventRecorder,
    Manager,
    TypedCache,
    Watch,
    Wiring,
    by_owner_uid,
    generation_changed,
    spec_or_metadata_changed,
    to_owner,
    wire,
    without_managed_fields,
)
from hortus.engine.deputies import Deputies
from hortus.engine.kubeconfigs import SECRETS, KubeconfigSecret, KubeconfigStore, TrialClients, sealed
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.remote import RemotePool, RemoteStates
from hortus.kube import Client

NAME = "cluster-access-controller"
"""The controller's name in metrics, logs and events."""
LONGEST_PAUSE = 300.0
"""Seconds between two attempts at most."""


def add_controller(
    manager: Manager,
    *,
    client: Client,
    pool: RemotePool,
    kubeconfigs: Cache,
    deputies: Deputies,
    leftovers: LeftoverRecorder,
    settings: Settings,
) -> ClusterAccessController:
    """Add the controller to `manager`. `client` is the management cluster, `pool` leads into the others.

    `kubeconfigs` holds the Secrets of GardenerClusters, with or without their values.
    """
    wiring = _wiring(manager, client, settings)
    clusters = manager.cache(GARDENER_CLUSTERS, namespace=settings.namespace, transform=without_managed_fields)
    secrets = _secrets(manager, settings)
    lookup = _lookup(wiring, clusters, kubeconfigs)
    inside, metrics = Clusters(pool, clock=manager.clock), AccessMetrics(manager.registry)
    reconciler = ClusterAccessController(
        wiring,
        vault=Vault(KubeconfigStore(client, secrets, field_manager=MANAGER), TypedCache(KubeconfigSecret, secrets)),
        lookup=lookup,
        clusters=inside,
        issuer=_issuer(manager, pool, settings),
        deputies=deputies,
        leftovers=leftovers,
        settings=settings,
        metrics=metrics,
    )
    manager.on_handover(inside.shed)
    manager.on_handover(metrics.shed)
    manager.controller(
        NAME,
        reconciler,
        sources=[
            # The caches that the requests' initial reconciles read are listed first.
            Watch(clusters, to=lookup.requests_of_cluster, when=generation_changed),
            Watch(kubeconfigs, to=lookup.requests_of_kubeconfig),
            Watch(secrets, to=to_owner(CLUSTER_ACCESSES)),
            Watch(wiring.cache.raw, when=spec_or_metadata_changed),
            *inside.watches.values(),
            RemoteStates(pool, to=inside.users_of),
        ],
        workers=settings.workers,
        backoff=Backoff(cap=LONGEST_PAUSE),
    )
    return reconciler


def _wiring(manager: Manager, client: Client, settings: Settings) -> Wiring[ClusterAccess]:
    events = EventRecorder(client, component=NAME, clock=manager.clock)
    manager.add_server(events)
    return wire(manager, ClusterAccessController, client=client, events=events, namespace=settings.namespace)


def _lookup(wiring: Wiring[ClusterAccess], clusters: Cache, kubeconfigs: Cache) -> ClusterLookup:
    return ClusterLookup(
        wiring.client,
        accesses=wiring.cache,
        clusters=TypedCache(GardenerCluster, clusters),
        kubeconfigs=TypedCache(KubeconfigSecret, kubeconfigs),
    )


def _secrets(manager: Manager, settings: Settings) -> Cache:
    """The Secrets that hold issued kubeconfigs, by the uid of their request."""
    own = f"{Label.REQUEST},{Label.MANAGED_BY}={MANAGER}"
    secrets = manager.cache(SECRETS, namespace=settings.namespace, labels=own, transform=sealed)
    secrets.add_index("owner", by_owner_uid)
    return secrets


def _issuer(manager: Manager, pool: RemotePool, settings: Settings) -> AccessIssuer:
    trials = TrialClients(
        timeout=settings.cluster_timeout,
        trust=pool.settings.trust,
        deny=pool.settings.deny,
        longest_answer=LONGEST_ANSWER,
    )
    return AccessIssuer(PermissionProof(trials), longest=settings.policy.longest, clock=manager.clock)
