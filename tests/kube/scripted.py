"""A server on loopback whose answers a test scripts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ssl import SSLContext

import orjson
from aiohttp import web

from hortus.kube.access import Access
from hortus.kube.objects import Object

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Script:
    """Answers in turn; the last one is repeated. Remembers the requests."""

    def __init__(self, *answers: Handler | web.Response | Object) -> None:
        self.answers = list(answers)
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.read())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, dict):
            return json(answer)
        if isinstance(answer, web.Response):
            return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
        return await answer(request)

    @property
    def targets(self) -> list[str]:
        return [request.raw_path for request in self.requests]


def json(body: Object, status: int = 200, **headers: str) -> web.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(status=status, body=orjson.dumps(body), content_type="application/json", headers=named)


def failure(code: int, reason: str, message: str = "no", **headers: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return json(status | {"code": code}, code, **headers)


@asynccontextmanager
async def serving(script: Handler, *, ssl: SSLContext | None = None) -> AsyncIterator[Access]:
    app = web.Application(client_max_size=1 << 30)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await script(request)

    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield Access(server=f"{'https' if ssl else 'http'}://{host}:{port}")
    finally:
        await runner.cleanup()
