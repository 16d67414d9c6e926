"""Puts the controllers of the fleet form together for a process that has a `Manager`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hortus.domains.agents.fleet.changes import AGENT_CHANGE
from hortus.domains.agents.fleet.configurations import AgentConfigurationController
from hortus.domains.agents.fleet.known import CONFIGURATION_INDEX, KnownPlacements
from hortus.domains.agents.fleet.members import AgentMembers, place_of
from hortus.domains.agents.fleet.metrics import AgentFleetMetrics
from hortus.domains.agents.fleet.placements import AgentPlacementController
from hortus.domains.agents.fleet.removal import PlacementRemoval
from hortus.domains.agents.fleet.rendering import cluster_values
from hortus.domains.agents.operating.pages import StatusPages
from hortus.domains.agents.settings import FleetSettings
from hortus.domains.agents.types import AgentConfiguration, AgentPlacement
from hortus.domains.inventory.types import CLUSTER_PROFILES, ClusterProfile, is_hibernated
from hortus.engine import (
    Backoff,
    Cache,
    Change,
    EventRecorder,
    Manager,
    NotReadable,
    Trigger,
    TypedCache,
    Watch,
    Wiring,
    labels_changed,
    read,
    spec_or_metadata_changed,
    wire,
    without_managed_fields,
)
from hortus.engine.deputies import Deputies
from hortus.engine.kubeconfigs import SECRETS, KubeconfigSecret, sealed
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.remote import KubeconfigRef, RemotePool, RemoteStates
from hortus.engine.rollouts import RolloutGate, waits_for
from hortus.engine.sources import Source
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, key_of

CONFIGURATIONS: Final = "agent-configuration-controller"
PLACEMENTS: Final = "agent-placement-controller"
"""The controllers' names in metrics, logs and events."""
_CLUSTER_INDEX: Final = "agent-cluster"
_LONGEST_PAUSE: Final = 300.0
"""Seconds between two attempts at most."""


def add_fleet(
    manager: Manager,
    *,
    client: Client,
    pool: RemotePool,
    deputies: Deputies,
    gate: RolloutGate,
    leftovers: LeftoverRecorder,
    settings: FleetSettings,
) -> None:
    """Add the controllers of AgentConfigurations and AgentPlacements. `client` is the management cluster."""
    events = EventRecorder(client, component=PLACEMENTS, clock=manager.clock)
    manager.add_server(events)
    namespace = settings.namespace
    profiles = _profiles(manager, namespace)
    placing = wire(manager, AgentPlacementController, client=client, events=events, namespace=namespace)
    configuring = wire(manager, AgentConfigurationController, client=client, events=events, namespace=namespace)
    placements, configurations = placing.cache, configuring.cache
    known = _known(placements)
    AgentFleetMetrics(manager.registry, known, configurations, manager.clock)
    _add_configurations(manager, configuring, profiles, known, settings=settings)
    members = AgentMembers(pool, clock=manager.clock)
    manager.on_handover(members.shed)
    pages, reported = _pages(manager, settings.resync)
    controller = AgentPlacementController(
        placing,
        configurations=configurations,
        profiles=profiles,
        members=members,
        deputies=deputies,
        operator_version=settings.operator_version,
        gate=gate,
        removal=PlacementRemoval(members, profiles, leftovers, detach_after=settings.detach_after),
        pages=pages,
        resync=settings.resync,
        report_period=settings.report_period,
        etcd_namespaces=settings.etcd_namespaces,
    )
    keys = _PlacementKeys(placements.raw)
    manager.controller(
        PLACEMENTS,
        controller,
        sources=[
            *_sources_of_placements(keys, placements.raw, configurations.raw, profiles.raw, gate),
            *_sources_of_members(pool, members, controller),
            reported,
        ],
        workers=settings.placement_workers,
        backoff=Backoff(first=1.0, cap=_LONGEST_PAUSE),
    )


def _profiles(manager: Manager, namespace: str) -> TypedCache[ClusterProfile]:
    found = manager.cache(CLUSTER_PROFILES, namespace=namespace, transform=without_managed_fields)
    return TypedCache(ClusterProfile, found)


def _known(placements: TypedCache[AgentPlacement]) -> KnownPlacements:
    placements.raw.add_index(CONFIGURATION_INDEX, _configuration_of)
    placements.raw.add_index(_CLUSTER_INDEX, _cluster_of)
    return KnownPlacements(placements)


def _pages(manager: Manager, period: float) -> tuple[StatusPages, Trigger]:
    """The status pages of agents, and the source of those whose report changed."""
    reported = Trigger()
    pages = StatusPages(manager.clock, reported.fire, period=period)
    manager.add_server(pages)
    manager.on_handover(pages.shed)
    return pages, reported


def _add_configurations(
    manager: Manager,
    wiring: Wiring[AgentConfiguration],
    profiles: TypedCache[ClusterProfile],
    placements: KnownPlacements,
    *,
    settings: FleetSettings,
) -> None:
    secrets = TypedCache(KubeconfigSecret, manager.cache(SECRETS, namespace=settings.namespace, transform=sealed))
    manager.controller(
        CONFIGURATIONS,
        AgentConfigurationController(
            wiring,
            profiles=profiles,
            placements=placements,
            secrets=secrets,
            report_period=settings.fleet_period,
            operator_version=settings.operator_version,
        ),
        sources=_sources_of_configurations(wiring.cache.raw, placements.raw, profiles.raw, secrets.raw),
        workers=settings.workers,
    )


def _sources_of_placements(
    keys: _PlacementKeys, placements: Cache, configurations: Cache, profiles: Cache, gate: RolloutGate
) -> list[Source]:
    return [
        Watch(profiles, to=keys.of_profile, when=_cluster_changed),
        Watch(configurations, to=keys.of_configuration, when=_came_or_went),
        gate.source(AGENT_CHANGE, keys_of=keys.of_cluster, waiting=keys.waiting),
        Watch(placements, when=spec_or_metadata_changed),
    ]


def _sources_of_members(pool: RemotePool, members: AgentMembers, controller: AgentPlacementController) -> list[Source]:
    """The workloads in clusters, their reachability, and another cluster in the place of one."""
    recreated = Trigger()

    def on_recreated(place: KubeconfigRef) -> None:
        for key in members.keys_at(place):
            controller.disturb(key)
            recreated.fire(key)

    pool.on_recreated(on_recreated)
    return [*members.sources, RemoteStates(pool, to=members.keys_at), recreated]


class _PlacementKeys:
    """The keys of AgentPlacements that a change concerns."""

    def __init__(self, placements: Cache) -> None:
        self._placements = placements

    def of_profile(self, profile: Object) -> Iterable[ObjectKey]:
        return self.of_cluster(key_of(profile).name)

    def of_cluster(self, cluster: str) -> list[ObjectKey]:
        return self._placements.keys_by(_CLUSTER_INDEX, cluster)

    def of_configuration(self, configuration: Object) -> Iterable[ObjectKey]:
        return self._placements.keys_by(CONFIGURATION_INDEX, str(key_of(configuration)))

    def waiting(self) -> list[ObjectKey]:
        return [key_of(one) for one in self._placements.values() if waits_for(one, AGENT_CHANGE)]


def _sources_of_configurations(
    configurations: Cache, placements: Cache, profiles: Cache, secrets: Cache
) -> list[Watch]:
    def every(changed: Object) -> Iterable[ObjectKey]:
        return [key for key in configurations if key.namespace == key_of(changed).namespace]

    def of_placement(placement: Object) -> Iterable[ObjectKey]:
        return [ObjectKey(*value.split("/", 1)) for value in _configuration_of(placement)]

    return [
        # Objects that a reconcile reads come first: with half of the profiles it would take agents away from clusters.
        Watch(profiles, to=every, when=labels_changed),
        Watch(secrets, to=every),
        Watch(placements, to=of_placement),
        Watch(configurations, to=every, when=spec_or_metadata_changed),
    ]


def _configuration_of(placement: Object) -> Iterable[str]:
    try:
        found = read(AgentPlacement, placement)
    except NotReadable:
        return ()
    return (f"{found.metadata.namespace}/{found.spec.configuration}",)


def _cluster_of(placement: Object) -> Iterable[str]:
    try:
        return (read(AgentPlacement, placement).spec.cluster,)
    except NotReadable:
        return ()


def _came_or_went(change: Change) -> bool:
    return change.old is None or change.new is None


def _cluster_changed(change: Change) -> bool:
    """Reports whether the way into a cluster, or a value that expressions can use, differs."""
    if change.old is None or change.new is None:
        return True
    before, after = (read(ClusterProfile, one) for one in (change.old, change.new))
    return (place_of(before), is_hibernated(before), cluster_values(before)) != (
        place_of(after),
        is_hibernated(after),
        cluster_values(after),
    )
