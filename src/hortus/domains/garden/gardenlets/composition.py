"""Puts the controllers of Gardenlets together for a process."""

from __future__ import annotations

from typing import Final

from hortus.domains import ProcessContext
from hortus.domains.garden.gardenlets.changes import GARDENLET_CHANGE
from hortus.domains.garden.gardenlets.charts import GardenletCharts
from hortus.domains.garden.gardenlets.decommission import Decommission, outline, seeds_of
from hortus.domains.garden.gardenlets.deploying import GardenletDeployer
from hortus.domains.garden.gardenlets.operator import GardenletOperator
from hortus.domains.garden.gardenlets.reading import OpenSeed, seeds_in
from hortus.domains.garden.gardenlets.selfupgrade import GardenletSelfUpgrade
from hortus.domains.garden.gardenlets.settings import GardenletSettings
from hortus.domains.garden.kinds.gardenlet import GARDEN_NAMESPACE
from hortus.domains.garden.kinds.seed import SEEDS, SHOOTS, RegisteredSeed
from hortus.engine import (
    EventRecorder,
    Manager,
    TypedCache,
    Watch,
    spec_or_metadata_changed,
    wire,
    without_managed_fields,
)
from hortus.engine.deputies import Deputies
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.rollouts import RolloutGate
from hortus.engine.sources import Source
from hortus.kube import Client
from hortus.kube.dialing import Network
from hortus.kube.kubeconfig import Trust
from hortus.kube.objects import Object, ObjectKey, key_of
from hortus.render.helm import BuiltinRenderer

OPERATOR: Final = "gardenlet-operator"
SELF_UPGRADE: Final = "gardenlet-self-upgrade"
"""Names of the controllers in metrics, logs and events."""


def add_to(process: ProcessContext, settings: GardenletSettings) -> None:
    """Add the controllers to a process."""
    add_controllers(
        process.manager,
        client=process.client,
        garden=process.garden,
        settings=settings,
        gate=process.gate,
        deputies=process.deputies,
        leftovers=process.leftovers,
        deny=process.pool.settings.deny,
    )


def add_controllers(
    manager: Manager,
    *,
    client: Client,
    garden: Client,
    settings: GardenletSettings,
    gate: RolloutGate,
    deputies: Deputies,
    leftovers: LeftoverRecorder,
    deny: tuple[Network, ...] = (),
    trust: Trust | None = None,
    open_seed: OpenSeed | None = None,
) -> None:
    """Add the operator, and self-upgrade where some Seeds are named. `client` has the Gardenlets, `garden` the Seeds.

    `open_seed` stands in for the folder of kubeconfigs.
    """
    parts = _Parts(manager, client, garden, settings, open_seed or seeds_in(settings.seeds), deputies)
    parts.add_operator(gate, leftovers, trust=trust or Trust(), deny=deny)
    if settings.upgraded:
        parts.add_self_upgrade()


class _Parts:
    """The caches and clients that both controllers share."""

    def __init__(
        self,
        manager: Manager,
        client: Client,
        garden: Client,
        settings: GardenletSettings,
        open_seed: OpenSeed,
        deputies: Deputies,
    ) -> None:
        self._manager = manager
        self._garden = garden
        self._settings = settings
        self._open_seed = open_seed
        self._deputies = deputies
        renderer = BuiltinRenderer()
        manager.on_stop(renderer.close)
        charts = GardenletCharts(client, renderer, settings, manager.clock)
        self._deployer = GardenletDeployer(garden, charts, settings, manager.clock)
        self._caches = manager.caches if garden is client else manager.caches_of(garden)
        self._seeds = self._caches.get(SEEDS, transform=without_managed_fields)
        self._typed = TypedCache(RegisteredSeed, self._seeds)
        events = EventRecorder(client, component=OPERATOR, clock=manager.clock)
        manager.add_server(events)
        self._wiring = wire(manager, GardenletOperator, client=client, events=events, namespace=GARDEN_NAMESPACE)

    def add_operator(
        self, gate: RolloutGate, leftovers: LeftoverRecorder, *, trust: Trust, deny: tuple[Network, ...]
    ) -> None:
        decommission, watches = None, [Watch(self._seeds, to=_gardenlet_of)]
        if self._settings.decommission:
            shoots = self._caches.get(SHOOTS, transform=outline)
            decommission = Decommission(
                self._garden,
                seeds=self._seeds,
                shoots=shoots,
                open_seed=self._open_seed,
                leftovers=leftovers,
                deadline=self._settings.deadline,
            )
            watches.append(Watch(shoots, to=lambda shoot: [_key_of(name) for name in seeds_of(shoot)]))
        operator = GardenletOperator(
            self._wiring,
            seeds=self._typed,
            deployer=self._deployer,
            settings=self._settings,
            gate=gate,
            deputies=self._deputies,
            trust=trust,
            deny=deny,
            decommission=decommission,
        )
        sources: list[Source] = [
            *watches,
            gate.source(GARDENLET_CHANGE, keys_of=lambda name: [_key_of(name)], waiting=operator.waiting),
            # The gardenlet's own report is read too, so that changes of the status count.
            Watch(self._wiring.cache.raw),
        ]
        self._manager.controller(OPERATOR, operator, sources=sources, workers=self._settings.workers)

    def add_self_upgrade(self) -> None:
        upgrade = GardenletSelfUpgrade(
            self._wiring,
            seeds=self._typed,
            deployer=self._deployer,
            settings=self._settings,
            open_seed=self._open_seed,
            deputies=self._deputies,
        )
        sources = [
            Watch(self._seeds, to=_gardenlet_of, when=lambda change: change.old is None or change.new is None),
            Watch(self._wiring.cache.raw, when=spec_or_metadata_changed),
        ]
        self._manager.controller(SELF_UPGRADE, upgrade, sources=sources, workers=self._settings.workers)


def _key_of(seed: str) -> ObjectKey:
    """The Gardenlet of a Seed, or of its ClusterProfile."""
    return ObjectKey(GARDEN_NAMESPACE, seed)


def _gardenlet_of(seed: Object) -> tuple[ObjectKey, ...]:
    return (_key_of(key_of(seed).name),)
