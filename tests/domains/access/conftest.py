"""One server for a module's tests; each test has a namespace and two clusters of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.domains.access.world import World, world

from hortus.testing.apiserver import TestServer


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[World]:
    async with world(server) as made:
        yield made
