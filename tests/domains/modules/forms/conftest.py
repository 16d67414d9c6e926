"""One server for a module's tests; each test has a cluster of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.domains.modules.forms.world import OneCluster, one_cluster

from hortus.testing.apiserver import TestServer, started_apiserver


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[OneCluster]:
    async with one_cluster(server) as made:
        yield made
