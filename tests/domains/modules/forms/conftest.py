"""One server and one registry for a module's tests; each test has a cluster of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.domains.modules.forms.world import OneCluster, one_cluster, sample_shelf
from tests.domains.modules.registry.shelves import Shelf

from hortus.testing.apiserver import TestServer


@pytest.fixture(scope="module")
def shelf(server: TestServer) -> Iterator[Shelf]:
    """A registry with the sample modules, on the loop of the server."""
    opened = sample_shelf()
    yield server.run(opened.__aenter__())
    server.run(opened.__aexit__(None, None, None))


@pytest.fixture
async def here(server: TestServer, shelf: Shelf) -> AsyncIterator[OneCluster]:
    async with one_cluster(server, shelf) as made:
        yield made
