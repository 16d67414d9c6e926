"""Answers of servers behind, for servers that do not give any."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hortus.apiserver.aggregation.apiservices import RemoteApi, ServiceReference
from hortus.apiserver.aggregation.documents import AGGREGATOR, RemoteRequests
from hortus.apiserver.aggregation.resolving import RemoteAddress, Resolver
from hortus.apiserver.aggregation.servers import RemoteServer, RemoteServers, Unreachable
from hortus.apiserver.registrations import CUSTOM

GROUP = "g.example.com"


def api(version: str, service: str = "behind") -> RemoteApi:
    return RemoteApi(GROUP, version, ServiceReference("default", service, 443), b"", True, CUSTOM, True)


class Silent(RemoteServers, RemoteServer, Resolver):
    """A server that takes requests and never answers."""

    def __init__(self) -> None:
        self.left = 0

    def of(self, cluster: str, api: RemoteApi) -> RemoteServer:
        return self

    async def target(self, cluster: str, service: ServiceReference) -> Any:
        return self

    def any(self) -> RemoteAddress:
        return RemoteAddress("10.0.0.1", 443)

    @asynccontextmanager
    async def ask(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        try:
            await asyncio.Event().wait()
        finally:
            self.left += 1
        yield


async def test_a_server_that_never_answers_is_left_after_some_time() -> None:
    server = Silent()
    with pytest.raises(Unreachable, match="context deadline exceeded"):
        await RemoteRequests(server, server).ask("root", api("v1"), "/apis", user=AGGREGATOR, within=0.01)
    assert server.left == 1
