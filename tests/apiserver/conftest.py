"""A server and plain HTTP against it, for tests of what is on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import aiohttp
import pytest

from hortus.testing.apiserver import TestServer, running_apiserver


class Answer(NamedTuple):
    code: int
    body: Any
    headers: Any


class Wire:
    """Requests to one logical cluster as the admin, JSON in and out."""

    def __init__(self, server: TestServer, session: aiohttp.ClientSession, cluster: str = "") -> None:
        self.server = server
        self.session = session
        self._base = server.cluster_url(cluster)

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "",
        accept: str = "",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        sent = {"Authorization": f"Bearer {self.server.token}", **(headers or {})}
        if accept:
            sent["Accept"] = accept
        options: dict[str, Any] = {"json": body} if not isinstance(body, bytes) else {"data": body}
        if content_type:
            sent["Content-Type"] = content_type
        if body is None:
            options = {}
        async with self.session.request(method, self._base + path, headers=sent, **options) as response:
            raw = await response.read()
            is_json = "json" in response.headers.get("Content-Type", "")
            import orjson

            return Answer(response.status, orjson.loads(raw) if is_json and raw else raw, response.headers)

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.send("GET", path, **options)

    async def post(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.send("POST", path, body, **options)

    async def put(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.send("PUT", path, body, **options)

    async def delete(self, path: str, body: Any = None, **options: Any) -> Answer:
        return await self.send("DELETE", path, body, **options)

    async def merge(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.send("PATCH", path, body, content_type="application/merge-patch+json", **options)

    def cluster(self, name: str) -> Wire:
        return Wire(self.server, self.session, name)


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    async with running_apiserver() as server:
        connector = aiohttp.TCPConnector(ssl=server.tls())
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Wire(server, session)


def configmap(name: str, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {"a": "b"}}
