from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.simulation.garden import simulated, started_garden

from hortus.kube import Client
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    """A simulated garden that reconciles no Shoot in the time of a test."""
    settings = GardenSettings(schedule_delay=1e6, nodes=False)
    with started_garden(settings) as running, simulated(running, settings):
        yield running


@pytest.fixture
async def garden(server: TestServer) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(server.kubeconfig_for("garden")) as client:
        yield client
