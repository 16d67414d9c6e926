"""Plain HTTP against an API server, for tests of what is on the wire."""

from __future__ import annotations

import asyncio
import contextlib
import io
import ssl
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import aiohttp
import orjson


class Answer(NamedTuple):
    code: int
    body: Any
    headers: Any

    @property
    def message(self) -> str:
        return str(self.body["message"])


class Events:
    """An open watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> dict[str, Any]:
        """The next event; fails the test when none comes."""
        line = await asyncio.wait_for(self._response.content.readline(), 60)
        assert line, "the watch has ended"
        event: dict[str, Any] = orjson.loads(line)
        return event

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Type and name of the next events."""
        found = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in found]

    async def ended(self) -> bool:
        return not await asyncio.wait_for(self._response.content.readline(), 60)


class Wire:
    """Requests to one API server below `base`, with JSON in and out."""

    def __init__(self, session: aiohttp.ClientSession, base: str, token: str) -> None:
        self.session = session
        self.base = base
        self.token = token

    def _headers(self, headers: dict[str, str] | None, accept: str, content_type: str) -> dict[str, str]:
        sent = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if accept:
            sent["Accept"] = accept
        if content_type:
            sent["Content-Type"] = content_type
        return sent | (headers or {})

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
        data = body if body is None or isinstance(body, bytes | io.IOBase) else orjson.dumps(body)
        if data is not None and not content_type:
            content_type = "application/json"
        sent = self._headers(headers, accept, content_type)
        async with self.session.request(method, self.base + path, headers=sent, data=data) as response:
            raw = await response.read()
            is_json = "json" in response.headers.get("Content-Type", "")
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

    async def json_patch(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.send("PATCH", path, body, content_type="application/json-patch+json", **options)

    async def strategic(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.send("PATCH", path, body, content_type="application/strategic-merge-patch+json", **options)

    async def apply(self, path: str, body: Any, *, manager: str = "tests", force: bool = False) -> Answer:
        query = f"?fieldManager={manager}" + ("&force=true" if force else "")
        return await self.send("PATCH", path + query, body, content_type="application/apply-patch+yaml")

    @contextlib.asynccontextmanager
    async def watch(
        self, path: str, *, accept: str = "", headers: dict[str, str] | None = None
    ) -> AsyncIterator[Events]:
        """A watch on `path`, whose query is given with it."""
        async with self.session.get(
            self.base + path, headers=self._headers(headers, accept, ""), timeout=aiohttp.ClientTimeout(total=None)
        ) as response:
            assert response.status == 200, await response.text()
            transport = response.connection.transport if response.connection is not None else None
            try:
                yield Events(response)
            finally:
                # A goodbye in TLS would outlive the loop of a short test.
                if isinstance(transport, asyncio.Transport):
                    transport.abort()


@contextlib.asynccontextmanager
async def connected(base: str, token: str, tls: ssl.SSLContext, *, patience: float = 120.0) -> AsyncIterator[Wire]:
    """A request that is not answered within `patience` seconds fails the test; watches have no end."""
    connector = aiohttp.TCPConnector(ssl=tls)
    timeout = aiohttp.ClientTimeout(total=patience)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=True, timeout=timeout) as session:
        yield Wire(session, base, token)
    # Aborted TLS connections are closed in the loop's next round.
    await asyncio.sleep(0)


def configmap(name: str, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    shown = {"a": "b"} if data is None else data
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": shown}


def names(answer: Answer) -> list[str]:
    assert answer.code == 200, answer.body
    return [item["metadata"]["name"] for item in answer.body["items"]]
