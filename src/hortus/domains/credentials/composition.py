"""Puts the GardenerCluster controller together for a process that has a `Manager`."""

from __future__ import annotations

from hortus.domains.credentials import secrets as kept
from hortus.domains.credentials.controller import SECRETS, GardenerClusterController
from hortus.domains.credentials.garden import SHOOTS, GardenClient
from hortus.domains.credentials.metrics import CredentialMetrics
from hortus.domains.credentials.proof import ClusterProof, NoProof
from hortus.domains.credentials.settings import Settings
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import Change, EventRecorder, Manager, Watch, spec_or_metadata_changed, without_managed_fields
from hortus.kube import Client
from hortus.kube.objects import Object

NAME = "gardener-cluster-controller"
"""The controller's name in metrics and logs."""


def add_controller(
    manager: Manager, *, client: Client, garden: Client, settings: Settings, events: EventRecorder
) -> GardenerClusterController:
    """Add the controller to `manager`. `client` is the management cluster, `garden` the Gardener API."""
    clusters = manager.cache(GARDENER_CLUSTERS, namespace=settings.namespace, transform=without_managed_fields)
    secrets = manager.cache(SECRETS, namespace=settings.namespace, labels=kept.SELECTOR, transform=kept.sealed)
    shoots = manager.caches_of(garden).get(SHOOTS, namespace=settings.garden_namespace, transform=_outline)
    proof = (
        ClusterProof(timeout=settings.cluster_timeout, plain_http=settings.plain_http)
        if settings.prove
        else NoProof(plain_http=settings.plain_http)
    )
    reconciler = GardenerClusterController(
        client=client,
        clusters=clusters,
        secrets=secrets,
        garden=GardenClient(garden, settings.garden_namespace),
        proof=proof,
        settings=settings,
        metrics=CredentialMetrics(manager.registry),
        events=events,
        clock=manager.clock,
    )
    manager.controller(
        NAME,
        reconciler,
        sources=[
            # Secrets first: the clusters' initial reconciles look them up.
            Watch(secrets, to=reconciler.keys_of_secret),
            Watch(clusters, when=spec_or_metadata_changed),
            Watch(shoots, to=reconciler.keys_of_shoot, when=_became_usable, awaited=False),
        ],
        workers=settings.workers,
        deadline=settings.reconcile_timeout,
    )
    return reconciler


def _outline(shoot: Object) -> Object:
    """What is kept of a Shoot: who it is, and whether its last operation succeeded."""
    metadata = shoot["metadata"]
    last = (shoot.get("status") or {}).get("lastOperation") or {}
    return {
        "metadata": {name: metadata.get(name, "") for name in ("name", "namespace", "uid", "resourceVersion")},
        "succeeded": last.get("state") == "Succeeded",
    }


def _became_usable(change: Change) -> bool:
    """A shoot that appeared, was made again, or has just been built: who waits for it need not wait longer."""
    if change.new is None or change.initial:
        return False
    if change.old is None or change.old["metadata"]["uid"] != change.new["metadata"]["uid"]:
        return True
    return bool(change.new["succeeded"] and not change.old["succeeded"])
