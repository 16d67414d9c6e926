"""One server for a module's tests; each test has logical clusters of its own, and Flux runs in the first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domains.stacks.flux.world import FluxWorld, flux_world

from hortus.testing.apiserver import TestServer


@pytest.fixture
async def there(server: TestServer, tmp_path: Path) -> AsyncIterator[FluxWorld]:
    async with flux_world(server, tmp_path) as made, made.flux.running():
        yield made
