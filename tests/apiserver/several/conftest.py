"""Two API servers on one etcd: `one` and `other` speak to them over HTTP. Needs an etcd binary; says so without."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import pytest
from tests.apiserver.store.etcdserver import find_etcd, free_port, running_etcd
from tests.apiserver.wire import Wire, connected

from hortus.apiserver.store import EtcdBackend
from hortus.testing.apiserver import TestServer, started_apiserver

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an etcd."""
    binary = find_etcd()
    if binary is None:
        pytest.skip("no etcd here: put it on the PATH (Debian: etcd-server) or name it in HORTUS_ETCD")
    port = free_port()
    with running_etcd(binary, tmp_path_factory.mktemp("etcd"), port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def servers(etcd: str) -> Iterator[tuple[TestServer, TestServer]]:
    root = f"/several-{next(_NUMBERS)}/"
    with ExitStack() as stack:
        yield (
            stack.enter_context(started_apiserver(backend=EtcdBackend([etcd], root=root))),
            stack.enter_context(started_apiserver(backend=EtcdBackend([etcd], root=root))),
        )


@pytest.fixture
async def one(servers: tuple[TestServer, TestServer]) -> AsyncIterator[Wire]:
    async with connected(servers[0].url, servers[0].token, servers[0].tls()) as found:
        yield found


@pytest.fixture
async def other(servers: tuple[TestServer, TestServer]) -> AsyncIterator[Wire]:
    async with connected(servers[1].url, servers[1].token, servers[1].tls()) as found:
        yield found


@pytest.fixture
async def namespace(one: Wire) -> str:
    name = f"test-{next(_NUMBERS)}"
    assert (await one.post("/api/v1/namespaces", {"metadata": {"name": name}})).code == 201
    return name


@pytest.fixture
def configmaps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"
