"""Scenarios that any Kubernetes API server must pass; here the embedded one over each of its stores.

A scenario speaks HTTP only, keeps to a namespace of its own and names what it makes so that scenarios do not meet.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.apiserver.wire import Wire, connected

from hortus.testing.apiserver import Store, TestServer, started_apiserver

_NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def server(request: pytest.FixtureRequest) -> Iterator[TestServer]:
    store: Store = request.param
    with started_apiserver(store=store) as running:
        yield running


@pytest.fixture
async def wire(server: TestServer) -> AsyncIterator[Wire]:
    async with connected(server.url, server.token, server.tls()) as found:
        yield found


@pytest.fixture
async def namespace(wire: Wire) -> str:
    name = f"scenario-{next(_NUMBERS)}"
    created = await wire.post("/api/v1/namespaces", {"metadata": {"name": name}})
    assert created.code == 201
    return name


@pytest.fixture
def configmaps(namespace: str) -> str:
    """The collection of config maps in the scenario's namespace."""
    return f"/api/v1/namespaces/{namespace}/configmaps"
