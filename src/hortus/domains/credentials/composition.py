"""Puts the GardenerCluster controller together for a process that has a `Manager`."""

from __future__ import annotations

from hortus.domains import Environment, Reload
from hortus.domains.credentials import service
from hortus.domains.credentials.controller import GardenerClusterController
from hortus.domains.credentials.garden import Garden, GardenClient
from hortus.domains.credentials.grants import allowed_namespaces
from hortus.domains.credentials.metrics import CredentialMetrics
from hortus.domains.credentials.settings import Settings
from hortus.domains.credentials.types import GARDENER_CLUSTERS, SECRET_SELECTOR
from hortus.engine import (
    Backoff,
    Cache,
    Change,
    EventRecorder,
    Manager,
    Watch,
    spec_or_metadata_changed,
    without_managed_fields,
)
from hortus.engine.kubeconfigs import (
    SECRETS,
    Advice,
    ClusterProof,
    DocumentProof,
    KubeconfigProof,
    TrialClients,
    sealed,
)
from hortus.kube import Client
from hortus.kube.dialing import Network
from hortus.kube.kubeconfig import Trust
from hortus.kube.objects import Object

_API_SERVERS = frozenset({"external", "wildcard-tls-seed-bound", "internal", "unmanaged"})
"""Names of the advertised addresses that lead to a shoot's API server (gardener, section 1.2)."""

LONGEST_PAUSE = 300.0
"""Seconds between two attempts at most: a garden that comes back after an hour must not be waited for another half."""

ADVICE = Advice(
    unusable="garden operator: see what issues kubeconfigs",
    refused="garden operator: its credential or the cluster's client CA is wrong",
    unreachable="cluster owner: see the shoot's conditions; tried again",
)

NAME = "gardener-cluster-controller"
"""The controller's name in metrics and logs."""
COMPONENT = "infrastructure-manager"
"""Source of the events, as of the Go system."""


def add_to(environment: Environment) -> Reload:
    """Add the controller to a process. Raises FlagError."""
    manager = environment.manager
    events = EventRecorder(environment.client, component=COMPONENT, clock=manager.clock)
    manager.add_server(events)
    controller = add_controller(
        manager,
        client=environment.client,
        garden=environment.garden,
        shoots=environment.shoots,
        settings=Settings.from_flags(environment.values),
        events=events,
        deny=environment.pool.settings.deny,
    )

    return lambda values: controller.become(Settings.from_flags(values))


def add_controller(
    manager: Manager,
    *,
    client: Client,
    garden: Client,
    shoots: Cache,
    settings: Settings,
    events: EventRecorder,
    deny: tuple[Network, ...],
) -> GardenerClusterController:
    """Add the controller to `manager`. `client` is the management cluster, `garden` the Gardener API.

    `shoots` holds at least what `outline` leaves of the project's Shoots. `deny` are networks that no kubeconfig may
    lead to.
    """
    trust, proof = Trust(plain_http=settings.plain_http), None
    if settings.prove:
        proof = ClusterProof(TrialClients(timeout=settings.cluster_timeout, trust=trust, deny=deny), advice=ADVICE)
    return assemble(
        manager,
        client=client,
        garden=GardenClient(garden, settings.garden_namespace),
        shoots=shoots,
        proof=proof or DocumentProof(trust=trust, advice=ADVICE),
        settings=settings,
        events=events,
    )


def assemble(
    manager: Manager,
    *,
    client: Client,
    garden: Garden,
    shoots: Cache,
    proof: KubeconfigProof,
    settings: Settings,
    events: EventRecorder,
) -> GardenerClusterController:
    """The same with any garden and any way of proving; `shoots` holds what `outline` leaves of Shoots."""
    clusters = manager.cache(GARDENER_CLUSTERS, namespace=settings.namespace, transform=without_managed_fields)
    secrets = manager.cache(SECRETS, namespace=settings.namespace, labels=SECRET_SELECTOR, transform=sealed)
    reconciler = GardenerClusterController(
        client=client,
        clusters=clusters,
        secrets=secrets,
        shoots=shoots,
        garden=garden,
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
            reconciler.again,
        ],
        workers=settings.workers,
        backoff=Backoff(cap=LONGEST_PAUSE),
        deadline=settings.reconcile_timeout,
    )
    return reconciler


def outline(shoot: Object) -> Object:
    """The parts of a Shoot that are cached: identity, addresses of its API server, grants, and whether it was built."""
    metadata, status = shoot["metadata"], shoot.get("status") or {}
    return {
        "metadata": {name: metadata.get(name, "") for name in ("name", "namespace", "uid", "resourceVersion")},
        "addresses": tuple(
            address["url"] for address in status.get("advertisedAddresses") or () if address["name"] in _API_SERVERS
        ),
        "allowed": allowed_namespaces(shoot),
        "succeeded": (status.get("lastOperation") or {}).get("state") == "Succeeded",
    }


def _became_usable(change: Change) -> bool:
    """A shoot that appeared, was made anew, has moved or has just been built: nobody need wait longer for it."""
    if change.new is None:
        return False
    if change.old is None or service.home_of(change.old) != service.home_of(change.new):
        return True
    if change.old["allowed"] != change.new["allowed"]:
        return True
    return bool(change.new["succeeded"] and not change.old["succeeded"])
