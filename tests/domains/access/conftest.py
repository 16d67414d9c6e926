"""One server for a module's tests; each test has a namespace and two clusters of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.domains.access.world import World, world

from hortus.testing.apiserver import TestServer, started_apiserver


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[World]:
    async with world(server) as made:
        yield made
