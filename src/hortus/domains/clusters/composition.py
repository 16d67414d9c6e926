"""Puts this domain's controllers together for a process that has a `Manager`."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import structlog

from hortus.domains import ProcessContext
from hortus.domains.clusters import service
from hortus.domains.clusters import settings as chosen
from hortus.domains.clusters.bindings import GardenBindings
from hortus.domains.clusters.changes import SUBJECTS
from hortus.domains.clusters.claiming import Claiming, Contenders
from hortus.domains.clusters.connecting import Connecting
from hortus.domains.clusters.controller import RuntimeController
from hortus.domains.clusters.conversion import Conversion
from hortus.domains.clusters.creation import Creation
from hortus.domains.clusters.defaults import DefaultMoves, profile_name
from hortus.domains.clusters.garden import CLOUD_PROFILES, Garden
from hortus.domains.clusters.inside import PoolWorkloads, Workloads
from hortus.domains.clusters.metrics import RuntimeMetrics
from hortus.domains.clusters.operatoraccess import OperatorAccess
from hortus.domains.clusters.outline import kept_outline
from hortus.domains.clusters.patching import Patching
from hortus.domains.clusters.permits import Permits
from hortus.domains.clusters.reading import connection_of, head_of, runtime_of
from hortus.domains.clusters.refusals import Refusals
from hortus.domains.clusters.registrycaches import RegistryCaches
from hortus.domains.clusters.retirement import Retirement
from hortus.domains.clusters.settings import Settings
from hortus.domains.clusters.shoot import kept_offer, profile_outline
from hortus.domains.clusters.shoot import profile_name as cloud_profile
from hortus.domains.clusters.types import OidcConfig, State
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.engine import (
    Cache,
    Change,
    EventRecorder,
    Manager,
    Source,
    TypedCache,
    Watch,
    spec_or_metadata_changed,
    wire,
    without_managed_fields,
)
from hortus.engine.deputies import Deputies
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.rollouts import RolloutGate
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.objects import Object, ObjectKey, key_of

NAME = "runtime-controller"
"""The controller's name in metrics, logs and events."""
CACHES_NAME = "registry-cache-controller"

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def add_to(process: ProcessContext) -> None:
    """Add the controllers to a process, unless it has no converter configuration. Raises FlagError."""
    values = process.values
    if not chosen.served(values):
        path = values["converter-config-filepath"]
        _log.warning("no converter configuration, so Runtimes are not served", path=path)
        return
    settings = chosen.from_flags(values)
    for remark in settings.configuration.remarks:
        _log.warning("converter configuration", remark=remark)
    add_controllers(
        process.manager,
        client=process.client,
        garden=process.garden,
        shoots=process.shoots,
        secrets=process.kubeconfigs,
        workloads=PoolWorkloads(process.pool, process.client, process.kubeconfigs, process.deputies),
        leftovers=process.leftovers,
        settings=settings,
        gate=process.gate,
        deputies=process.deputies,
    )


def add_controllers(
    manager: Manager,
    *,
    client: Client,
    garden: Client,
    shoots: Cache,
    secrets: Cache,
    workloads: Workloads,
    leftovers: LeftoverRecorder,
    settings: Settings,
    gate: RolloutGate,
    deputies: Deputies,
) -> RuntimeController:
    """Add them to `manager`. `client` is the management cluster, `garden` the Gardener API.

    `shoots` holds at least what `outline` leaves of the project's Shoots, `secrets` the kubeconfig Secrets, with or
    without their values. `workloads` leads into the clusters.
    """
    permits = Permits(deputies, settings.configuration, settings.garden_namespace)
    parts = _Parts(manager, client, garden, shoots, workloads, settings, gate, leftovers, permits)
    reconciler, runtimes = parts.controller(), parts.wiring.cache.raw
    manager.controller(
        NAME,
        reconciler,
        sources=parts.sources(),
        workers=settings.workers,
    )
    if settings.custom_configs or settings.cache_configs:
        caches = RegistryCaches(
            client=client,
            runtimes=runtimes,
            secrets=secrets,
            workloads=workloads,
            switches=settings.custom_configs,
            lists=settings.cache_configs,
        )
        manager.controller(CACHES_NAME, caches, sources=[Watch(secrets)])
    return reconciler


class _Parts:
    """The parts of the Runtime controller."""

    def __init__(
        self,
        manager: Manager,
        client: Client,
        garden: Client,
        shoots: Cache,
        workloads: Workloads,
        settings: Settings,
        gate: RolloutGate,
        leftovers: LeftoverRecorder,
        permits: Permits,
    ) -> None:
        events = EventRecorder(client, component=NAME, clock=manager.clock)
        manager.add_server(events)
        namespace = settings.namespace
        self.wiring = wire(manager, RuntimeController, client=client, events=events, namespace=namespace)
        self.clusters = manager.cache(GARDENER_CLUSTERS, namespace=namespace, transform=without_managed_fields)
        self.wiring.cache.raw.add_index("profile", lambda document: (profile_name(head_of(document)),))
        self.contenders = Contenders(self.wiring.cache.raw)
        self._shoots = shoots
        self._workloads = workloads
        self._settings = settings
        self._gate = gate
        self._defaults = DefaultMoves(gate, settings.configuration)
        self._leftovers = leftovers
        self._permits = permits
        self._metrics = RuntimeMetrics(manager.registry)
        manager.on_handover(self._metrics.shed)
        self._garden = Garden(garden, settings.garden_namespace, shoots)
        profiles = None
        if settings.check_profiles:
            profiles = manager.caches_of(garden).get(CLOUD_PROFILES, transform=profile_outline)
        self._profiles = profiles
        bindings = GardenBindings(self._garden)
        self._conversion = _conversion(client, manager.clock, workloads, settings, bindings, profiles)
        self._refusals = Refusals(self.wiring.clock, self._conversion.offer)

    def sources(self) -> list[Source]:
        """GardenerClusters and Shoots first: the Runtimes' initial reconciles look them up."""
        runtimes, contenders = self.wiring.cache.raw, self.contenders
        return [
            Watch(self.clusters, to=contenders.of_cluster, when=_connection_changed),
            Watch(self._shoots, to=contenders.of_shoot, when=_facts_changed, awaited=False),
            Watch(runtimes, when=spec_or_metadata_changed),
            Watch(runtimes, to=contenders.of_deleted, when=_gone),
            *self._of_offers(),
            *(self._gate.source(kind, keys_of=self._of_profile, waiting=lambda: runtimes) for kind in SUBJECTS),
        ]

    def _of_offers(self) -> Iterable[Source]:
        """Failed Runtimes are tried again when their CloudProfile offers something else."""
        if self._profiles is not None:
            failed = self.wiring.cache.raw
            failed.add_index("failed", _failed_of)
            yield Watch(
                self._profiles,
                to=lambda profile: failed.keys_by("failed", key_of(profile).name),
                when=_offers_otherwise,
                awaited=False,
            )

    def _of_profile(self, name: str) -> Iterable[ObjectKey]:
        """The Runtimes of this ClusterProfile."""
        return self.wiring.cache.keys_by("profile", name)

    def controller(self) -> RuntimeController:
        garden, conversion, permits = self._garden, self._conversion, self._permits
        return RuntimeController(
            self.wiring,
            garden=garden,
            permits=permits,
            metrics=self._metrics,
            claiming=Claiming(self.contenders, garden, permits),
            creation=Creation(garden, conversion, permits, self._refusals),
            defaults=self._defaults,
            patching=Patching(garden, conversion, self._defaults, permits, self._refusals, self.wiring.clock),
            connecting=self._connecting(),
            retirement=Retirement(self.wiring.client, self.clusters, garden, permits, self._leftovers),
            refusals=self._refusals,
        )

    def _connecting(self) -> Connecting:
        default = self._settings.configuration.cluster.shared_tenant.as_object()
        return Connecting(
            client=self.wiring.client,
            clusters=TypedCache(GardenerCluster, self.clusters),
            garden=self._garden,
            workloads=self._workloads,
            default_oidc=msgspec.convert(default, OidcConfig),
            clock=self.wiring.clock,
        )


def _conversion(
    client: Client,
    clock: Clock,
    workloads: Workloads,
    settings: Settings,
    bindings: GardenBindings,
    profiles: Cache | None,
) -> Conversion:
    config_map = settings.configuration.converter.kubernetes.api_server.acl.config_map_name
    return Conversion(
        configuration=settings.configuration,
        tenants=settings.tenants,
        workloads=workloads,
        access=OperatorAccess(client, config_map, enabled=settings.acl),
        audit_log_mandatory=settings.audit_log_mandatory,
        structured_authentication=settings.structured_authentication,
        ignore_removed_zones=settings.ignore_removed_zones,
        bindings=bindings,
        clock=clock,
        profiles=profiles,
    )


def _facts_changed(change: Change) -> bool:
    """Anything but the progress of an operation."""
    return change.old is None or change.new is None or kept_outline(change.old) != kept_outline(change.new)


def _connection_changed(change: Change) -> bool:
    if change.old is None or change.new is None:
        return True
    return connection_of(change.old) != connection_of(change.new)


def _offers_otherwise(change: Change) -> bool:
    if change.old is None or change.new is None:
        return not change.initial
    return kept_offer(change.old) != kept_offer(change.new)


def _failed_of(document: Object) -> tuple[str, ...]:
    """The CloudProfile of a failed Runtime."""
    runtime = runtime_of(document)
    failed = runtime.spec is not None and service.state_of(runtime) == State.FAILED
    return tuple(filter(None, (cloud_profile(runtime),))) if failed else ()


def _gone(change: Change) -> bool:
    return change.new is None
