"""One server for a module's tests; each test has a namespace of its own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.apiserver.wire import Wire, connected

from hortus.testing.apiserver import TestServer, started_apiserver

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver(clusters=["other"]) as running:
        yield running


@pytest.fixture
async def wire(server: TestServer) -> AsyncIterator[Wire]:
    async with connected(server.url, server.token, server.tls()) as found:
        yield found


@pytest.fixture
async def other(server: TestServer) -> AsyncIterator[Wire]:
    """The logical cluster `other` of the same server."""
    async with connected(server.cluster_url("other"), server.token, server.tls()) as found:
        yield found


@pytest.fixture
async def namespace(wire: Wire) -> str:
    name = f"test-{next(_NUMBERS)}"
    created = await wire.post("/api/v1/namespaces", {"metadata": {"name": name}})
    assert created.code == 201
    return name
