"""A garden for all tests of the coordinator."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import pytest
from tests.domains.garden.migration.garden import NAMESPACE, GardenWorld
from tests.simulation.garden import started_garden

from hortus.kube import Client
from hortus.kube.errors import AlreadyExists
from hortus.kube.objects import Resource
from hortus.simulation.garden.kinds import SHOOTS
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def garden_server() -> Iterator[TestServer]:
    with started_garden(GardenSettings()) as running:
        yield running


class Worlds:
    """Makes worlds, each with a Shoot of its own."""

    def __init__(self, server: TestServer) -> None:
        self._server = server

    def __call__(self) -> AbstractAsyncContextManager[GardenWorld]:
        return self._world()

    @asynccontextmanager
    async def _world(self) -> AsyncIterator[GardenWorld]:
        async with Client.from_kubeconfig(self._server.kubeconfig_for("garden")) as client:
            with suppress(AlreadyExists):
                await client.create(
                    _NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
                )
            world = GardenWorld(self._server, client, f"demo-{next(_numbers)}")
            yield world
            confirmed = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
            await world.patch(confirmed)
            await client.delete(SHOOTS, world.name, NAMESPACE)


@pytest.fixture
def worlds(garden_server: TestServer) -> Worlds:
    return Worlds(garden_server)
