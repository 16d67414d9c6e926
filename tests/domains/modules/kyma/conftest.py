"""One server for a module's tests; each test has logical clusters of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.domains.modules.kyma.world import KymaWorld, kyma_world

from hortus.domains.modules.kyma import deletion
from hortus.testing.apiserver import TestServer, started_apiserver


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deletion has twelve steps with a second between each two."""
    monkeypatch.setattr(deletion, "PAUSE", 0.0)


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[KymaWorld]:
    async with kyma_world(server) as made:
        yield made
