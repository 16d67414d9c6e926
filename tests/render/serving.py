"""A scripted HTTP server on loopback: handlers in Python, a record of what was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiohttp import web

from hortus.render.artifacts import TransferSettings

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Asked(NamedTuple):
    method: str
    path: str
    authorization: str | None
    headers: dict[str, str]


class Site:
    """One server: `handle` answers, `asked` remembers."""

    def __init__(self, handle: Handler) -> None:
        self.handle = handle
        self.asked: list[Asked] = []
        self.port = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append(Asked(request.method, request.raw_path, request.headers.get("Authorization"), headers))
        try:
            return await self.handle(request)  # type: ignore[arg-type]
        except web.HTTPException as answer:
            return answer


@asynccontextmanager
async def serving(handle: Handler) -> AsyncIterator[Site]:
    site = Site(handle)
    runner = web.ServerRunner(web.Server(site.answer, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    listener = web.TCPSite(runner, "127.0.0.1", 0)
    await listener.start()
    site.port = runner.addresses[0][1]
    try:
        yield site
    finally:
        await runner.cleanup()


def loopback(*hosts: str, redirects: frozenset[str] | None = None, **limits: object) -> TransferSettings:
    """Settings that allow plain http to servers of a test, and no waiting worth the name."""
    allowed = frozenset(hosts)
    fields: dict[str, object] = {"first_wait": 0.001, "connect_timeout": 60.0, "idle_timeout": 60.0} | limits
    return TransferSettings(plain_http=allowed, local_hosts=allowed, redirect_hosts=redirects, **fields)  # type: ignore[arg-type]


async def cut(
    request: web.Request, body: bytes, *, length: int, headers: dict[str, str] | None = None
) -> web.StreamResponse:
    """Say `length` bytes, send `body`, and break the connection."""
    response = web.StreamResponse(headers={"Content-Length": str(length), **(headers or {})})
    await response.prepare(request)
    await response.write(body)
    assert request.transport is not None
    await asyncio.sleep(0)
    request.transport.abort()
    return response
