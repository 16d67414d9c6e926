"""The webhook that API servers send audit events to, over HTTPS with client certificates.

A request is answered 200 when its events are kept as the sync policy says. While the spool has no room a request is
held for some seconds and then answered 429, so that the API server sends it again. The bytes that have arrived of all
bodies are bounded, in all and by sender, and each body in time; a request beyond that is answered 429 too.
"""

from __future__ import annotations

import ssl

import structlog
from aiohttp import web

from hortus.domains.garden.audit.buffer.committing import Committer
from hortus.domains.garden.audit.buffer.events import NotEventsError, lines_of
from hortus.domains.garden.audit.buffer.metrics import BufferMetrics
from hortus.domains.garden.audit.buffer.settings import TlsPart
from hortus.domains.garden.audit.buffer.spool import SpoolFull
from hortus.engine.health import Address
from hortus.engine.serving.clients import shows_name
from hortus.engine.serving.listening import HttpListener
from hortus.kube.listeners import ListenerLimits
from hortus.kube.secret import Secret
from hortus.kube.tls import client_context, identify, server_context

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

LARGEST_BODY = 16 * 1024 * 1024
"""Bytes. kube-apiserver sends 10 MiB at most by default, and 4 MB as the audit extension configures it."""
RECEIVER_LIMITS = ListenerLimits(bodies=4 * LARGEST_BODY, body=30.0)
"""kube-apiserver gives a request up after 30 seconds."""
PATH = "/audit"


class ReceiverTls:
    """The certificate files; a renewed pair is shown from the next handshake on."""

    def __init__(self, part: TlsPart) -> None:
        """Raises OSError, ValueError."""
        self.names = frozenset(part.client_names)
        self._part = part
        certificate, key = self._pair()
        self.context: ssl.SSLContext = server_context(
            certificate=certificate, key=key, client_ca=part.client_ca_file.read_bytes()
        )

    def refresh(self) -> None:
        """Shows the files as they are now; a pair that cannot be used leaves the former in place."""
        try:
            certificate, key = self._pair()
            # Tried first: one that does not fit would leave the context without any.
            client_context(ca=certificate, certificate=certificate, key=key)
            identify(self.context, certificate, key)
        except (OSError, ValueError) as error:
            _log.warning("the certificate cannot be used, the former stays in use", error=str(error))

    def _pair(self) -> tuple[bytes, Secret]:
        return self._part.certificate_file.read_bytes(), Secret(self._part.key_file.read_text())


class AuditWebhook:
    """Serves the webhook. `start`, `stop`."""

    def __init__(
        self,
        address: Address,
        committer: Committer,
        metrics: BufferMetrics,
        *,
        tls: ReceiverTls | None,
        hold: float = 5.0,
        largest: int = LARGEST_BODY,
        limits: ListenerLimits = RECEIVER_LIMITS,
    ) -> None:
        """`largest` is the size in bytes of the largest body that the spool can hold."""
        self.port = 0
        self._address = address
        self._committer = committer
        self._metrics = metrics
        self._tls = tls
        self._hold = hold
        self._largest = min(largest, LARGEST_BODY)
        self._limits = limits
        self._listener: HttpListener | None = None

    async def start(self) -> None:
        """Raises OSError."""
        app = web.Application(client_max_size=self._largest)
        app.router.add_post(PATH, self._receive)
        context = self._tls.context if self._tls is not None else None
        self._listener = HttpListener(self._address, app, tls=context, limits=self._limits, grace=5.0)
        await self._listener.start()
        self.port = self._listener.port

    async def stop(self) -> None:
        if self._listener is not None:
            await self._listener.stop()

    async def _receive(self, request: web.Request) -> web.Response:
        if self._tls is not None and not shows_name(request, self._tls.names):
            return self._refuse(403, "client", "the client certificate names nobody who may send")
        if (request.content_length or 0) > self._largest:
            return self._too_large()
        try:
            lines = lines_of(await request.read())
            if lines.lines:
                await self._committer.commit(lines, hold=self._hold)
        except web.HTTPRequestEntityTooLarge:
            return self._too_large()
        except web.HTTPRequestTimeout:
            return self._refuse(408, "slow", f"the body did not arrive within {self._limits.body:g} seconds")
        except web.HTTPTooManyRequests as refusal:
            return self._refuse(429, "memory", refusal.text or "", {"Retry-After": "5"})
        except NotEventsError as error:
            _log.warning("a body is no list of audit events", error=str(error))
            return self._refuse(400, "body", str(error))
        except SpoolFull:
            return self._refuse(429, "full", "the spool is full", {"Retry-After": "5"})
        except OSError as error:
            _log.error("events cannot be kept", error=str(error))
            return self._refuse(503, "disk", "the events cannot be kept")
        self._metrics.received.inc(lines.lines)
        self._metrics.received_bytes.inc(len(lines.payload))
        return web.Response(body=b"{}", content_type="application/json")

    def _too_large(self) -> web.Response:
        text = f"the body is larger than {self._largest} bytes"
        if self._largest < LARGEST_BODY:
            text += ", which is half of spool.maxBytes"
        _log.warning("a body is too large", problem=text)
        return self._refuse(413, "size", text)

    def _refuse(self, status: int, reason: str, text: str, headers: dict[str, str] | None = None) -> web.Response:
        self._metrics.turned_away.labels(reason).inc()
        return web.Response(status=status, text=f"{text}\n", headers=headers)
