"""A management cluster with Flux, whose addons may be handed over."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.domains.stacks.addons.world import CONFIG_MAPS, HOME, V1BETA1, AddonWorld, addon_world
from tests.domains.stacks.flux.controllers import FluxDouble, definitions

from hortus.domains.stacks.flux.objects import HELM_RELEASES
from hortus.domains.stacks.flux.settings import CHOICE, FluxSettings
from hortus.domains.stacks.hooks.certificates import self_signed
from hortus.kube import SystemClock
from hortus.kube.objects import Object, Resource
from hortus.simulation.capi.definitions import CRDS
from hortus.testing.apiserver import TestServer

PAIR = self_signed(["127.0.0.1"], now=SystemClock().now())


class FluxWorld:
    """The world of addons, and Flux."""

    def __init__(self, here: AddonWorld) -> None:
        self.here = here
        self.flux = FluxDouble(here.client, here.inside)
        self.requests = here.requests
        self.controllers = here.controllers
        self.before: dict[str, str] = {}
        """The objects of the addons before the work of a test."""

    async def choose(self, who: str | None, name: str = "shop") -> None:
        """The owner of a Cluster chooses who applies its addons."""
        await self.here.client.patch(V1BETA1, name, {"metadata": {"annotations": {CHOICE: who}}}, HOME)

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
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            here.port = probe.getsockname()[1]
        for one in definitions():
            await here.client.apply(CRDS, one, field_manager="test")
        yield FluxWorld(here)
