"""Each test has logical clusters of its own on the server of its module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.domains.agents.fleet.world import AgentWorld, agent_world

from hortus.testing.apiserver import TestServer


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[AgentWorld]:
    async with agent_world(server) as made:
        yield made
