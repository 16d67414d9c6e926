"""One server for a module's tests; each test has namespaces and a workload cluster of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.domains.canary.yard import Yard, yard
from tests.simulation.garden import started_garden

from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_garden(GardenSettings()) as running:
        yield running


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[Yard]:
    async with yard(server) as made:
        yield made
