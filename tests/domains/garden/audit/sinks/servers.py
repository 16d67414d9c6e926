"""A server in the place of a sink, which answers as a test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiohttp import web

from hortus.domains.garden.audit.buffer.sinks import SinkBatch


class Seen(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Seen], web.Response]


class SinkServer:
    """Records requests. `answers` are used up first, then each request is answered by `usual`."""

    def __init__(self, usual: Answer) -> None:
        self.usual = usual
        self.answers: list[web.Response] = []
        self.seen: list[Seen] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        seen = Seen(request.method, request.raw_path, headers, await request.read())
        self.seen.append(seen)
        return self.answers.pop(0) if self.answers else self.usual(seen)


@asynccontextmanager
async def sink_server(usual: Answer) -> AsyncIterator[SinkServer]:
    server = SinkServer(usual)
    app = web.Application(client_max_size=1 << 28)
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, auto_decompress=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


LINES = (
    b'{"auditID":"1","stageTimestamp":"2026-11-23T10:00:00.250000Z","note":"\\u00e9 \\"x\\""}',
    b'{"auditID":"2","stageTimestamp":"2026-11-23T10:00:01Z"}',
    b'{"auditID":"3"}',
)


def batch(*lines: bytes, first: int = 7) -> SinkBatch:
    some = lines or LINES
    payload = b"\n".join(some) + b"\n"
    return SinkBatch("5p00l", first, first + len(some), len(some), payload, "d1935t", 1_795_428_000.5)
