"""Metrics of a child of `hortus up`, at a socket in the state directory: for its owner alone, and no port is taken.

`hortus simulate` reads them; so can anybody: `curl --unix-socket DIR/controllers.sock http://localhost/metrics`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry

from hortus.engine.exposition import exposed

_LONGEST = 100
"""Characters of a socket's path; systems differ between 104 and 108."""


@asynccontextmanager
async def metrics_at(path: Path, registry: CollectorRegistry) -> AsyncIterator[None]:
    """Serves `/metrics` at the socket. There is no socket if its path is too long."""
    if len(str(path)) > _LONGEST:
        yield
        return

    async def answer(request: web.Request) -> web.Response:
        return await exposed(request, registry)

    app = web.Application()
    app.router.add_get("/metrics", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    # A process that was killed leaves a file that no longer accepts connections but still occupies the name.
    _remove(path)
    await web.UnixSite(runner, str(path)).start()
    os.chmod(path, 0o600)  # noqa: PTH101 - a name in a directory that is the owner's alone already
    try:
        yield
    finally:
        await runner.cleanup()
        _remove(path)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
