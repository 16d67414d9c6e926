"""Each test has a seed of its own on the server of its module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.domains.garden.world import SeedWorld, seed_world

from hortus.testing.apiserver import TestServer


@pytest.fixture
async def seed(server: TestServer) -> AsyncIterator[SeedWorld]:
    async with seed_world(server) as made:
        yield made
