"""Puts the controllers of addons together for a process that has a `Manager`."""

from __future__ import annotations

from typing import Final

from hortus.domains.stacks.addons.changes import STACK
from hortus.domains.stacks.addons.controller import ClusterAddonController
from hortus.domains.stacks.addons.creation import AddonCreation, addon_key, to_addon, to_cluster
from hortus.domains.stacks.addons.membership import NAME as MEMBERSHIP
from hortus.domains.stacks.addons.membership import MembershipLabels
from hortus.domains.stacks.addons.rendering import AddonReleases, AddonRendering
from hortus.domains.stacks.addons.workload import SECRET_SELECTOR, StackWorkloads, clusters_at, clusters_of
from hortus.domains.stacks.capi import kubeconfig_secret
from hortus.domains.stacks.flux.composition import add_handover
from hortus.domains.stacks.flux.registry import ChartRegistry
from hortus.domains.stacks.flux.settings import OFF, FluxSettings
from hortus.domains.stacks.flux.steps import FluxSteps
from hortus.domains.stacks.metrics import AddonMetrics
from hortus.engine import Cache, Change, EventRecorder, Manager, Watch, spec_or_metadata_changed, wire
from hortus.engine.deputies import Deputies
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.remote import KubeconfigRef, RemotePool, RemoteStates
from hortus.engine.rollouts import GateSource, RolloutGate, waits_for
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, key_of
from hortus.render.helm import ChartRenderer

NAME: Final = "clusteraddon"
CREATE: Final = "clusteraddoncreate"
"""The controllers' names in metrics, logs and events, as in the Go system."""


def add_addons(
    manager: Manager,
    *,
    client: Client,
    namespace: str,
    clusters: Cache,
    pool: RemotePool,
    releases: AddonReleases,
    renderer: ChartRenderer,
    events: EventRecorder,
    gate: RolloutGate,
    deputies: Deputies,
    workers: int = 10,
    inventory: bool = False,
    flux: FluxSettings = OFF,
    charts: ChartRegistry | None = None,
) -> ClusterAddonController:
    """Add both controllers. `clusters` is the cache of Clusters, `namespace` the watched one, empty for all.

    With `flux` addons may be handed to Flux, which fetches them from `charts`. With `inventory`
    each Cluster of a stack becomes a member of the inventory.
    """
    secrets = manager.cache(SECRETS, namespace=namespace, labels=SECRET_SELECTOR, transform=sealed)
    wiring = wire(manager, ClusterAddonController, client=client, events=events, namespace=namespace)
    addons = wiring.cache.raw
    manager.registry.register(AddonMetrics(addons))
    handover = add_handover(manager, client=client, namespace=namespace, registry=charts, addons=addons)
    controller = ClusterAddonController(
        wiring,
        clusters=clusters,
        workloads=StackWorkloads(pool, secrets),
        releases=releases,
        rendering=AddonRendering(renderer),
        gate=gate,
        flux=FluxSteps(flux, handover),
        deputies=deputies,
    )
    sources = [
        _rollouts(gate, addons),
        *(handover.sources() if handover is not None else ()),
        Watch(secrets, to=_addon_of_secret),
        RemoteStates(pool, to=lambda place: _addons_at(place, addons)),
        Watch(clusters, to=to_addon, when=spec_or_metadata_changed),
        Watch(addons, when=spec_or_metadata_changed),
    ]
    manager.controller(NAME, controller, sources=sources, workers=workers)
    _add_creation(manager, client, clusters=clusters, addons=addons, workers=workers)
    if inventory:
        _add_membership(manager, client, clusters=clusters, secrets=secrets, workers=workers)
    return controller


def _add_creation(manager: Manager, client: Client, *, clusters: Cache, addons: Cache, workers: int) -> None:
    creation = AddonCreation(client, clusters=clusters, addons=addons)
    sources = [Watch(addons, to=to_cluster, when=_is_gone), Watch(clusters, when=spec_or_metadata_changed)]
    manager.controller(CREATE, creation, sources=sources, workers=workers)


def _add_membership(manager: Manager, client: Client, *, clusters: Cache, secrets: Cache, workers: int) -> None:
    membership = MembershipLabels(client, secrets=secrets, clusters=clusters)
    sources = [Watch(clusters, to=_secret_of_cluster, when=spec_or_metadata_changed), Watch(secrets)]
    manager.controller(MEMBERSHIP, membership, sources=sources, workers=workers)


def _rollouts(gate: RolloutGate, addons: Cache) -> GateSource:
    """The source of ClusterAddons that a rollout admits."""

    def waiting() -> list[ObjectKey]:
        return [key_of(one) for one in addons.values() if waits_for(one, STACK)]

    def of_cluster(cluster: str) -> list[ObjectKey]:
        return [key for key in waiting() if key.name == f"cluster-addon-{cluster}"]

    return gate.source(STACK, keys_of=of_cluster, waiting=waiting)


def _secret_of_cluster(cluster: Object) -> list[ObjectKey]:
    key = key_of(cluster)
    return [ObjectKey(key.namespace, kubeconfig_secret(key.name))]


def _addon_of_secret(secret: Object) -> list[ObjectKey]:
    return [addon_key(cluster) for cluster in clusters_of(secret)]


def _addons_at(place: KubeconfigRef, addons: Cache) -> list[ObjectKey]:
    """The ClusterAddon of the cluster that is reached by a kubeconfig; none for a cluster of another domain."""
    found = map(addon_key, clusters_at(place))
    return [key for key in found if key in addons]


def _is_gone(change: Change) -> bool:
    return change.new is None
