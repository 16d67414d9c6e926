"""The callers of `wire` by aiohttp's client: what a program in Python asks with."""

from __future__ import annotations

import aiohttp
import yarl
from tests.benchmarks.load.wire import Target


class AiohttpCaller:
    """One connection; see `wire.Caller`."""

    def __init__(self, target: Target) -> None:
        self._base = f"https://{target.host}:{target.port}"
        lines = (line.partition(": ") for line in target.head.split("\r\n") if line)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=target.tls, limit=1),
            headers={name: value for name, _, value in lines if name != "Host"},
        )

    @classmethod
    async def open(cls, target: Target) -> AiohttpCaller:
        return cls(target)

    async def call(
        self, method: str, path: str, body: bytes = b"", content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        headers = {"Content-Type": content_type} if body else {}
        url = yarl.URL(self._base + path, encoded=True)
        async with self._session.request(method, url, data=body or None, headers=headers) as answer:
            return answer.status, await answer.read()

    async def close(self) -> None:
        await self._session.close()
