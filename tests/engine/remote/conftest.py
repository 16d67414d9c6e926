from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.engine.remote.world import World, world_of

from hortus.testing.apiserver import TestServer, started_apiserver


@pytest.fixture(scope="package")
def server() -> Iterator[TestServer]:
    with started_apiserver(clusters=["red", "blue", "green"]) as made:
        yield made


@pytest.fixture
async def world(server: TestServer, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A pool with quick limits; `@pytest.mark.parametrize("world", [{...}], indirect=True)` sets some."""
    async with world_of(server, **getattr(request, "param", {})) as made:
        yield made
