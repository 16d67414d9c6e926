"""One server for a module's tests; each test has a logical cluster of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domains.stacks.catalog.world import CatalogWorld, catalog_world

from hortus.testing.apiserver import TestServer


@pytest.fixture
async def here(server: TestServer, tmp_path: Path) -> AsyncIterator[CatalogWorld]:
    async with catalog_world(server, tmp_path) as made:
        yield made
