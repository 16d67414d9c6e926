"""One server for a module's tests; each test has a logical cluster of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.domains.rollouts.world import RolloutWorld, world

from hortus.domains.rollouts import controller, slices
from hortus.testing.apiserver import TestServer, started_apiserver

_FASTER = 10.0


@pytest.fixture
def faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rollouts decide and write ten times as often: most tests wait for several decisions in turn."""
    for module, name in ((controller, "PACE"), (controller, "STATUS_PERIOD"), (slices, "PERIOD")):
        monkeypatch.setattr(module, name, getattr(module, name) / _FASTER)


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


@pytest.fixture
async def here(server: TestServer, faster: None) -> AsyncIterator[RolloutWorld]:
    async with world(server) as made:
        yield made
