"""An HTTPS server that API servers and other controllers call; every replica serves, leader or not.

A server listens from the moment at which it has a certificate, and shows a renewed one from the next handshake on. The
certificate comes from a controller, or from the files tls.crt and tls.key that cert-manager's Secret is mounted as.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import structlog
from aiohttp import web

from hortus.engine.files import FileWatch
from hortus.engine.health import Address
from hortus.engine.manager import Manager
from hortus.engine.serving.certificates import ServingPair, pair_in
from hortus.engine.serving.clients import KnownClients
from hortus.engine.serving.listening import HttpListener
from hortus.kube.listeners import LIMITS, ListenerLimits
from hortus.kube.tls import identify, server_context, trust

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_CERTIFICATE: Final = "tls.crt"
_LARGEST: Final = 8 << 20
"""Bytes of a request, which holds two objects at most; the API server stores none above 3 MiB."""


class HttpsServer:
    """Serves POST requests by path, and GET requests by the paths of `reads`."""

    def __init__(
        self,
        name: str,
        address: Address,
        routes: Mapping[str, Handler],
        *,
        reads: Mapping[str, Handler] = MappingProxyType({}),
        shown: Callable[[ServingPair], None] | None = None,
        clients: KnownClients | None = None,
        limits: ListenerLimits = LIMITS,
    ) -> None:
        """`name` stands in logs; `shown` is called with each certificate from its first handshake on.

        With `clients` a POST request of any other client is answered 403.
        """
        self.name = name
        self._address = address
        self._routes = routes
        self._reads = reads
        self._shown = shown
        self._clients = clients
        self._limits = limits
        self._context: ssl.SSLContext | None = None
        self._identified = asyncio.Event()
        self.port = 0
        """The port that it listens on; 0 before."""

    def identify(self, pair: ServingPair) -> None:
        """Show this certificate from the next handshake on. Raises ValueError, and then shows the former."""
        context = server_context(certificate=pair.certificate, key=pair.key)
        if self._context is None:
            if self._clients is not None:
                trust(context, self._clients.authority)
                context.verify_mode = ssl.CERT_OPTIONAL  # clients of `reads` show none
            self._context = context
        else:
            identify(self._context, pair.certificate, pair.key)
        if self._shown is not None:
            self._shown(pair)
        self._identified.set()

    def check(self) -> None:
        """Raises RuntimeError while it has no certificate or does not listen: calls sent here would fail."""
        if not self.port:
            reason = "" if self._identified.is_set() else ", since there is no certificate"
            raise RuntimeError(f"{self.name} do not listen on {self._address} yet{reason}")

    async def run(self) -> None:
        """Serve until cancelled. Raises OSError that names the address when it is taken."""
        await self._identified.wait()
        app = web.Application(client_max_size=_LARGEST)
        for path, handler in self._routes.items():
            app.router.add_post(path, self._known(handler))
        for path, handler in self._reads.items():
            app.router.add_get(path, handler)
        listener = HttpListener(self._address, app, tls=self._context, limits=self._limits)
        try:
            await listener.start()
            self.port = listener.port
            _log.info("serving", server=self.name, address=str(self._address), port=self.port)
            await asyncio.get_running_loop().create_future()
        finally:
            self.port = 0
            await listener.stop()

    def _known(self, handler: Handler) -> Handler:
        clients = self._clients
        if clients is None:
            return handler

        async def answer(request: web.Request) -> web.StreamResponse:
            clients.check(request)
            return await handler(request)

        return answer


class MountedCertificate:
    """The certificate of a server in the files of a folder."""

    def __init__(self, folder: Path, server: HttpsServer) -> None:
        self._folder = folder
        self._server = server

    def show(self) -> None:
        """Let the server show what is in the folder now. Raises OSError, ValueError."""
        pair = pair_in(self._folder)
        if pair is not None:
            self._server.identify(pair)

    def refresh(self) -> None:
        """The same, but a certificate that cannot be used leaves the former in place."""
        try:
            self.show()
        except (OSError, ValueError) as error:
            _log.warning("the certificate cannot be used, the former stays in use", error=str(error))

    async def follow(self) -> None:
        """Show each new certificate until cancelled."""
        await FileWatch(self._folder / _CERTIFICATE, self.refresh).run()


def is_mounted(folder: Path) -> bool:
    """Reports whether a folder holds a certificate and its key."""
    return pair_in(folder) is not None


def add_server(manager: Manager, server: HttpsServer) -> None:
    """Run a server on this replica, which is ready only when it listens."""
    manager.add(server.name, server.run, leader_only=False)
    manager.readiness.add(server.name, server.check)


def add_mounted(manager: Manager, server: HttpsServer, folder: Path) -> None:
    """Add a server whose certificate is in `folder`. Raises OSError, ValueError for one that cannot be used."""
    certificate = MountedCertificate(folder, server)
    certificate.show()
    add_server(manager, server)
    manager.add(f"{server.name} certificate", certificate.follow, leader_only=False)
