"""Metrics of a child of `hortus up`, at a socket in the state directory: for its owner alone, and no port is taken.

`hortus simulate` reads them; so can anybody: `curl --unix-socket DIR/controllers.sock http://localhost/metrics`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry

from hortus.engine.exposition import exposed
from hortus.engine.serving.listening import LONGEST_PATH, HttpListener
from hortus.kube.listeners import LIMITS, ListenerLimits


@asynccontextmanager
async def metrics_at(
    path: Path, registry: CollectorRegistry, *, limits: ListenerLimits = LIMITS
) -> AsyncIterator[None]:
    """Serves `/metrics` at the socket. There is no socket if its path is too long."""
    if len(str(path)) > LONGEST_PATH:
        yield
        return

    async def answer(request: web.Request) -> web.Response:
        return await exposed(request, registry)

    app = web.Application()
    app.router.add_get("/metrics", answer)
    async with HttpListener(path, app, limits=limits):
        yield
