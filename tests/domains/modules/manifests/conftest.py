"""One server for a module's tests; each test has logical clusters of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.domains.modules.manifests.world import ModuleWorld, module_world

from hortus.testing.apiserver import TestServer


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[ModuleWorld]:
    async with module_world(server) as made:
        yield made
