"""One server for a module's tests; each test has logical clusters of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domains.stacks.addons.world import AddonWorld, addon_world

from hortus.testing.apiserver import TestServer


@pytest.fixture
async def here(server: TestServer, tmp_path: Path) -> AsyncIterator[AddonWorld]:
    async with addon_world(server, tmp_path) as made:
        yield made
