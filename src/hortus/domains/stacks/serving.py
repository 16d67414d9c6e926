"""An HTTPS server whose certificate is mounted from a Secret, as cert-manager writes it: tls.crt and tls.key."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import structlog
from aiohttp import web

from hortus.engine import Manager
from hortus.engine.files import FileWatch
from hortus.engine.health import CANNOT_LISTEN, Address
from hortus.kube.secret import Secret
from hortus.kube.tls import identify, server_context

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"
_LARGEST: Final = 4 << 20
"""Bytes of a request: two objects of the size that etcd allows, and some more."""


class HttpsServer:
    """Serves POST requests by path. A certificate that is renewed is shown from the next handshake on."""

    def __init__(self, name: str, address: Address, folder: Path, routes: Mapping[str, Handler]) -> None:
        """`name` stands in logs, `folder` has the certificate."""
        self._name = name
        self._address = address
        self._folder = folder
        self._routes = routes
        self._context: ssl.SSLContext | None = None
        self._runner: web.AppRunner | None = None
        self.port = address.port
        """The port that it listens on."""

    async def start(self) -> None:
        """Listen. Raises OSError, also for an address that is taken, and ValueError for a bad certificate."""
        certificate, key = self._pair()
        self._context = server_context(certificate=certificate, key=key)
        app = web.Application(client_max_size=_LARGEST)
        for path, handler in self._routes.items():
            app.router.add_post(path, handler)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._address.host, self._address.port, ssl_context=self._context).start()
        except OSError as error:
            await runner.cleanup()
            raise OSError(error.errno, f"{CANNOT_LISTEN} {self._address}: {error.strerror}") from error
        self._runner = runner
        self.port = runner.addresses[0][1]
        _log.info("serving", server=self._name, port=self.port)

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def refresh(self) -> None:
        """Show the certificate that is in the folder now; one that cannot be used leaves the former in place."""
        if self._context is None:
            return
        try:
            certificate, key = self._pair()
            server_context(certificate=certificate, key=key)  # a pair that does not fit would leave us without any
            identify(self._context, certificate, key)
        except (OSError, ValueError) as error:
            _log.warning("the certificate cannot be used, the former stays in use", server=self._name, error=str(error))

    def _pair(self) -> tuple[bytes, Secret]:
        return (
            (self._folder / _CERTIFICATE).read_bytes(),
            Secret((self._folder / _KEY).read_bytes().decode("ascii", "replace")),
        )


def add_https_server(
    manager: Manager, name: str, address: Address, folder: Path, routes: Mapping[str, Handler]
) -> HttpsServer | None:
    """Serve on every replica, leader or not. Without a certificate in `folder` nothing is served, and None returned."""
    if not (folder / _CERTIFICATE).exists():
        _log.info("not serving, since there is no certificate", server=name, folder=str(folder))
        return None
    server = HttpsServer(name, address, folder, routes)
    manager.add_server(server)
    manager.add(f"{name} certificate", FileWatch(folder / _CERTIFICATE, server.refresh).run, leader_only=False)
    return server
