"""The HTTPS server of runtime hooks: `POST /hooks.runtime.cluster.x-k8s.io/v1alpha1/<hook>/<handler>`.

Every answer has HTTP code 200 and says in its status whether the hook succeeded (kubernetes-sigs/cluster-api,
docs/proposals/20220221-runtime-SDK.md). All replicas serve.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Final

import orjson
import structlog
from aiohttp import web

from hortus.domains.stacks.flux.registry import ChartRegistry
from hortus.domains.stacks.hooks.certificates import ServingPair
from hortus.domains.stacks.hooks.handling import CONTRACT, HANDLERS, HookHandler
from hortus.engine.health import CANNOT_LISTEN, Address
from hortus.kube.objects import Object
from hortus.kube.tls import identify, server_context

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

LARGEST: Final = 8 << 20
"""Bytes of a request, which holds a whole Cluster; the API server stores no object above 3 MiB."""
DISCOVERY: Final = f"/{CONTRACT}/discovery"


class HookServer:
    """Serves the hooks at one address, from the moment at which it has a certificate."""

    def __init__(self, address: Address, handler: HookHandler, charts: ChartRegistry | None = None) -> None:
        """`charts` are served as well, for Flux."""
        self._charts = charts
        self._address = address
        self._handler = handler
        self._context: ssl.SSLContext | None = None
        self._identified = asyncio.Event()
        self.port = 0
        """The port that it listens on; 0 before."""

    def identify(self, pair: ServingPair) -> None:
        """Show this certificate from the next handshake on. Raises ValueError."""
        if self._context is None:
            self._context = server_context(certificate=pair.certificate, key=pair.key)
        else:
            identify(self._context, pair.certificate, pair.key)
        if self._charts is not None:
            self._charts.identify(pair)
        self._identified.set()

    async def run(self) -> None:
        """Serve until cancelled. Raises OSError that names the address when it is taken."""
        await self._identified.wait()
        app = web.Application(client_max_size=LARGEST)
        app.router.add_post(DISCOVERY, self._discovery)
        for name, hook in HANDLERS.items():
            app.router.add_post(f"/{CONTRACT}/{hook.lower()}/{name}", self._hook)
        if self._charts is not None:
            app.router.add_get("/v2{rest:.*}", self._charts.answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await self._listen(runner)
            await asyncio.get_running_loop().create_future()
        finally:
            self.port = 0
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> None:
        site = web.TCPSite(runner, self._address.host, self._address.port, ssl_context=self._context)
        try:
            await site.start()
        except OSError as error:
            raise OSError(error.errno, f"{CANNOT_LISTEN} {self._address}: {error.strerror}") from error
        self.port = runner.addresses[0][1]
        _log.info("runtime hooks are served", address=str(self._address), port=self.port)

    async def _discovery(self, request: web.Request) -> web.Response:
        return _response(self._handler.discovery())

    async def _hook(self, request: web.Request) -> web.Response:
        hook = HANDLERS[request.path.rpartition("/")[2]]
        try:
            body: Any = orjson.loads(await request.read())
        except orjson.JSONDecodeError:
            body = None
        return _response(await self._handler.call(hook, body if isinstance(body, dict) else {}))


def _response(answer: Object) -> web.Response:
    return web.Response(body=orjson.dumps(answer), content_type="application/json")
