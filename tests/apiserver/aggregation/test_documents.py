"""Answers of servers behind, for servers that do not give any, and documents of several versions of one server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from hortus.apiserver.aggregation.apiservices import RemoteApi, RemoteApis, ServiceReference
from hortus.apiserver.aggregation.documents import AGGREGATOR, RemoteAnswer, RemoteDocuments, RemoteRequests
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


class Served(RemoteApis, RemoteRequests):
    """APIServices of one cluster, and the documents of their servers."""

    def __init__(self, *served: RemoteApi) -> None:
        self.serve(*served)
        self.asked: list[str] = []
        self.changed: Callable[[str, str], None]

    def serve(self, *served: RemoteApi) -> None:
        self.served = {(each.group, each.version): each for each in served}

    def of(self, cluster: str) -> Mapping[tuple[str, str], RemoteApi]:
        return self.served

    def on_change(self, listener: Callable[[str, str], None]) -> None:
        self.changed = listener

    async def ask(self, cluster: str, api: RemoteApi, target: str, *, etag: str = "", **options: Any) -> RemoteAnswer:
        name = api.service.name
        self.asked.append(f"{name} {etag}".strip())
        return RemoteAnswer(304, {}, b"") if etag else RemoteAnswer(200, {"ETag": "1"}, orjson.dumps({"of": name}))


async def test_a_server_of_several_versions_is_asked_once_for_its_document() -> None:
    served = Served(api("v1"), api("v1beta1"), api("v2", "other"))
    documents = RemoteDocuments(served, served)
    found = await documents.swaggers("root")
    assert [(each.version, each.tag, each.document) for each in found] == [
        ("v1", "1", {"of": "behind"}),
        ("v1beta1", "1", {"of": "behind"}),
        ("v2", "1", {"of": "other"}),
    ]
    assert sorted(served.asked) == ["behind", "other"]


async def test_the_document_of_a_server_without_an_apiservice_is_forgotten() -> None:
    served = Served(api("v1"), api("v2", "other"))
    documents = RemoteDocuments(served, served)
    await documents.swaggers("root")
    served.serve(api("v1"))
    served.changed("root", f"v2.{GROUP}")
    served.serve(api("v1"), api("v2", "other"))
    served.asked.clear()
    await documents.swaggers("root")
    assert sorted(served.asked) == ["behind 1", "other"]
