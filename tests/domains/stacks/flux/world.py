"""A management cluster with Flux, whose addons may be handed over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.domains.definitions import define
from tests.domains.stacks.addons.world import CONFIG_MAPS, HOME, V1BETA1, AddonWorld, addon_world

from hortus.domains import free_port
from hortus.domains.stacks.flux.objects import HELM_RELEASES
from hortus.domains.stacks.flux.settings import CHOICE, FluxSettings
from hortus.engine import Manager
from hortus.engine.serving import self_signed
from hortus.kube import SystemClock
from hortus.kube.objects import Object, Resource
from hortus.simulation.flux.composition import add_flux
from hortus.simulation.flux.definitions import definitions
from hortus.simulation.flux.kinds import REQUESTED
from hortus.simulation.flux.settings import FluxSimulationSettings
from hortus.testing.apiserver import TestServer

FLUX = tuple(definitions())
PAIR = self_signed(["127.0.0.1"], now=SystemClock().now())


class FluxRuns:
    """Flux of one management cluster, and a record of its work."""

    def __init__(self, here: AddonWorld) -> None:
        self._here = here
        self.actions: list[tuple[str, str]] = []
        """install, upgrade and uninstall, with the chart's name."""
        self.failing: set[str] = set()
        """Charts that cannot be installed."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        manager = Manager(self._here.client, grace=0.0)
        controller = add_flux(manager, client=self._here.client, settings=FluxSimulationSettings(retry=0.1))
        controller.failing = self.failing
        controller.on_action = lambda action, chart: self.actions.append((action, chart))
        async with manager.running():
            yield


class FluxWorld:
    """The world of addons, and Flux."""

    def __init__(self, here: AddonWorld) -> None:
        self.here = here
        self.flux = FluxRuns(here)
        self.requests = here.requests
        self.controllers = here.controllers
        self.before: dict[str, str] = {}
        """The objects of the addons before the work of a test."""

    async def choose(self, who: str | None, name: str = "shop") -> None:
        """The owner of a Cluster chooses who applies its addons."""
        await self.here.client.patch(V1BETA1, name, {"metadata": {"annotations": {CHOICE: who}}}, HOME)

    async def request(self, name: str, value: str) -> None:
        """Ask helm-controller to reconcile a HelmRelease, as `flux reconcile` does."""
        await self.here.client.patch(HELM_RELEASES, name, {"metadata": {"annotations": {REQUESTED: value}}}, HOME)

    async def handed(self, resource: Resource = HELM_RELEASES) -> dict[str, Object]:
        """The objects that were given to Flux, by name."""
        found = await self.here.client.list(resource, HOME)
        return {one["metadata"]["name"]: one for one in found.items}

    async def identities(self) -> dict[str, str]:
        """The uid of each ConfigMap of the addons: an object that was created again has another."""
        found = await self.here.inside.list(CONFIG_MAPS, "kube-system", labels="clusterstack.x-k8s.io/instance=owned")
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found.items}


@asynccontextmanager
async def flux_world(server: TestServer, folder: Path, *, default: bool = False) -> AsyncIterator[FluxWorld]:
    async with addon_world(server, folder) as here:
        here.flux = FluxSettings(offered=True, default=default)
        here.pair = PAIR
        here.port = free_port()
        await define(server, here.name, *FLUX)
        yield FluxWorld(here)
