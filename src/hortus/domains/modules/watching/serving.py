"""Running the listener in a process of controllers, behind Istio or on an address of its own."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Final

import structlog

from hortus.domains.modules.names import GATEWAY_SECRET
from hortus.domains.modules.watching.listener import EventListener
from hortus.domains.modules.watching.secrets import TlsSecret, read_tls
from hortus.engine import Cache, Change
from hortus.engine.remote import SECRETS
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.secret import Secret
from hortus.kube.tls import identify, server_context, trust

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

RETRY: Final = 2.0
"""Seconds between two attempts to read the gateway's Secret."""

MakeListener = Callable[[ssl.SSLContext | None], EventListener]


class ListenerRun:
    """Runs the listener. In `port` is the port once it is served."""

    def __init__(self, make: MakeListener) -> None:
        self._make = make
        self.port = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        await self._serve(None)

    async def _serve(self, context: ssl.SSLContext | None) -> None:
        listener = self._make(context)
        await listener.start()
        self.port = listener.port
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.port = 0
            await listener.stop()


class DirectListenerRun(ListenerRun):
    """Runs the listener with the certificate in the gateway's Secret, and follows its changes."""

    def __init__(self, make: MakeListener, *, client: Client, gateway: Cache, namespace: str, clock: Clock) -> None:
        super().__init__(make)
        self._client = client
        self._gateway = gateway
        self._namespace = namespace
        self._clock = clock
        self._changed = asyncio.Event()

    async def run(self) -> None:
        detach = self._gateway.subscribe(self._on_change)
        try:
            secret = await self._secret()
            context = server_context(
                certificate=secret.value("tls.crt"), key=_key(secret), client_ca=secret.value("ca.crt")
            )
            following = asyncio.create_task(self._follow(context), name="watcher listener certificate")
            try:
                await self._serve(context)
            finally:
                following.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await following
        finally:
            detach()

    async def _follow(self, context: ssl.SSLContext) -> None:
        while True:
            await self._changed.wait()
            secret = await self._secret()
            try:
                # A context only learns more authorities; the receiver checks each certificate against the present ones.
                trust(context, secret.value("ca.crt"))
                identify(context, secret.value("tls.crt"), _key(secret))
            except ValueError as error:
                _log.error("the listener keeps its certificate", secret=GATEWAY_SECRET, error=str(error))

    async def _secret(self) -> TlsSecret:
        """The gateway's Secret, as soon as it is there."""
        while True:
            self._changed.clear()
            try:
                return read_tls(await self._client.get(SECRETS, GATEWAY_SECRET, self._namespace))
            except NotFound:
                await self._changed.wait()
            except KubeError as error:
                _log.warning("the listener's certificate could not be read", error=str(error))
                await self._clock.sleep(RETRY)

    def _on_change(self, change: Change) -> None:
        self._changed.set()


def _key(secret: TlsSecret) -> Secret:
    return Secret(secret.value("tls.key").decode("ascii", "replace"))
