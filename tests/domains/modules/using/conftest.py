"""The cluster of the tests of commands."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.domains.modules.using.cluster import Cluster

from hortus.kube import Client
from hortus.testing.apiserver import running_apiserver


@pytest.fixture
async def here() -> AsyncIterator[Cluster]:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        cluster = Cluster(server, client)
        await cluster.prepare()
        yield cluster
