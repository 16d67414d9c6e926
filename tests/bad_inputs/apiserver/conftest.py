"""One attacked server for a module's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.apiserver.wire import Wire
from tests.bad_inputs.apiserver.attacked import Target, attacked


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    """A server with the limits that it has when nobody says anything."""
    with attacked(clusters=("a", "b")) as running:
        yield running


@pytest.fixture
async def wire(target: Target) -> AsyncIterator[Wire]:
    async with target.wire() as found:
        yield found


@pytest.fixture
async def bystander(target: Target) -> AsyncIterator[None]:
    """Somebody who is served well all through the test."""
    async with target.bystander():
        yield
