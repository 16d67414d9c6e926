"""Puts the GardenerCluster controller together for a process that has a `Manager`."""

from __future__ import annotations

from hortus.domains import ProcessContext, Reload
from hortus.domains.credentials.changes import KUBECONFIG_ROTATION
from hortus.domains.credentials.cleanup import Cleanup
from hortus.domains.credentials.controller import GardenerClusterController
from hortus.domains.credentials.garden import Garden, GardenClient
from hortus.domains.credentials.issuing import ADVICE, KubeconfigIssuer
from hortus.domains.credentials.metrics import CredentialMetrics
from hortus.domains.credentials.secrets import ClusterSecrets, SecretStores
from hortus.domains.credentials.settings import Settings
from hortus.domains.credentials.shoots import ShootFactsCache, became_usable
from hortus.domains.credentials.types import MANAGER, SECRET_SELECTOR
from hortus.engine import (
    Backoff,
    Cache,
    EventRecorder,
    Manager,
    TypedCache,
    Watch,
    spec_or_metadata_changed,
    wire,
)
from hortus.engine.deputies import Deputies
from hortus.engine.kubeconfigs import (
    SECRETS,
    ClusterProof,
    DocumentProof,
    KubeconfigProof,
    KubeconfigSecret,
    KubeconfigStore,
    TrialClients,
    sealed,
)
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.rollouts import RolloutGate
from hortus.kube import Client
from hortus.kube.dialing import Network
from hortus.kube.kubeconfig import Trust

LONGEST_PAUSE = 300.0
"""Seconds between two attempts at most: a garden that comes back after an hour must not be waited for another half."""

NAME = "gardener-cluster-controller"
"""The controller's name in metrics and logs."""
COMPONENT = "infrastructure-manager"
"""Source of the events, as of the Go system."""


def add_to(process: ProcessContext) -> Reload:
    """Add the controller to a process. Raises FlagError."""
    manager = process.manager
    events = EventRecorder(process.client, component=COMPONENT, clock=manager.clock)
    manager.add_server(events)
    controller = add_controller(
        manager,
        client=process.client,
        garden=process.garden,
        shoots=process.shoots,
        settings=Settings.from_flags(process.values),
        events=events,
        deny=process.pool.settings.deny,
        gate=process.gate,
        deputies=process.deputies,
        leftovers=process.leftovers,
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
    gate: RolloutGate,
    deputies: Deputies,
    leftovers: LeftoverRecorder,
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
        gate=gate,
        deputies=deputies,
        leftovers=leftovers,
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
    gate: RolloutGate,
    deputies: Deputies,
    leftovers: LeftoverRecorder,
) -> GardenerClusterController:
    """Assemble the controller with any garden and any proof; `shoots` holds what `outline` leaves of Shoots."""
    wiring = wire(manager, GardenerClusterController, client=client, events=events, namespace=settings.namespace)
    cache = manager.cache(SECRETS, namespace=settings.namespace, labels=SECRET_SELECTOR, transform=sealed)
    typed = TypedCache(KubeconfigSecret, cache)
    stores = SecretStores(KubeconfigStore(client, cache, field_manager=MANAGER), cache, deputies)
    secrets, metrics = ClusterSecrets(wiring.cache, typed, stores), CredentialMetrics(manager.registry)
    manager.on_handover(metrics.shed)
    reconciler = GardenerClusterController(
        wiring,
        secrets=secrets,
        cleanup=Cleanup(client=client, secrets=typed, stores=stores, deputies=deputies, namespace=settings.namespace),
        issuer=KubeconfigIssuer(garden, proof, manager.clock),
        shoots=ShootFactsCache(shoots, settings.garden_namespace),
        deputies=deputies,
        leftovers=leftovers,
        settings=settings,
        metrics=metrics,
        gate=gate,
    )
    manager.controller(
        NAME,
        reconciler,
        sources=[
            Watch(cache, to=secrets.clusters_of),  # first: the clusters' initial reconciles look Secrets up
            Watch(wiring.cache.raw, when=spec_or_metadata_changed),
            Watch(shoots, to=reconciler.keys_of_shoot, when=became_usable, awaited=False),
            # Not awaited: clusters get their first kubeconfig though no rollout can be read.
            gate.source(
                KUBECONFIG_ROTATION, keys_of=reconciler.keys_of_profile, waiting=reconciler.waiting, awaited=False
            ),
            reconciler.again,
        ],
        workers=settings.workers,
        backoff=Backoff(cap=LONGEST_PAUSE),
        deadline=settings.reconcile_timeout,
    )
    return reconciler
