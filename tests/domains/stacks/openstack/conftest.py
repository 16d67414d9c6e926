"""One server for a module's tests; each test has a logical cluster and a cloud of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domains.stacks.openstack.world import World, made_world

from hortus.testing.apiserver import TestServer


@pytest.fixture
async def world(server: TestServer, tmp_path: Path) -> AsyncIterator[World]:
    async with made_world(server, tmp_path) as found:
        yield found
