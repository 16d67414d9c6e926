"""One server for a module's tests; each test has a logical cluster of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.domains.agents.operating.world import AgentsWorld, agents_world

from hortus.testing.apiserver import TestServer


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[AgentsWorld]:
    async with agents_world(server) as made:
        yield made
