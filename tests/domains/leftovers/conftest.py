"""One server with a garden for a module's tests; each test has a namespace, a project and clusters of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.domains.leftovers.world import Ledger, ledger
from tests.simulation.garden import started_garden

from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_garden(GardenSettings()) as running:
        yield running


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[Ledger]:
    async with ledger(server) as made:
        yield made
