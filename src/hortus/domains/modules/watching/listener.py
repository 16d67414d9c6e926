"""The HTTP server to which agents report: `POST /v2/lifecycle-manager/event`.

Behind Istio it speaks plain HTTP, and the sender's certificate comes in a header. On its own address it terminates TLS
itself and asks for the certificate. The sender is known before its body is read. An accepted event is only noted, so an
answer takes no longer than that; what is in work at the same time is bounded, in all and for each sender.
"""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import structlog
from aiohttp import web

from hortus.domains.modules.names import MANAGED_BY_LIFECYCLE_MANAGER
from hortus.domains.modules.watching.events import LARGEST_BODY
from hortus.domains.modules.watching.metrics import LISTENER, WatcherMetrics
from hortus.domains.modules.watching.receiving import EventReceiver, EventRefused, EventSender
from hortus.domains.modules.watching.senders import HEADER, NoCertificate, from_connection, from_header
from hortus.domains.modules.watching.webhook import CONTRACT
from hortus.engine.health import Address
from hortus.engine.serving.listening import HttpListener
from hortus.kube.clock import Clock
from hortus.kube.listeners import ListenerLimits

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

MOST_REQUESTS: Final = 512
"""Requests in work at the same time; more are asked to come again."""
MOST_OF_SENDER: Final = 8
"""The same of one sender."""
RETRY_AFTER: Final = 1
"""Seconds after which a refused request may come again."""
LISTENER_LIMITS: Final = ListenerLimits(connections=10_000, line=64 * 1024, head_bytes=128 * 1024)
"""Each agent keeps a connection; a header of certificates is read beyond its limit, so that it gets its answer."""


class EventListener:
    """Serves agents at one address."""

    def __init__(
        self,
        address: Address,
        receiver: EventReceiver,
        metrics: WatcherMetrics,
        *,
        clock: Clock,
        tls: ssl.SSLContext | None = None,
        limits: ListenerLimits = LISTENER_LIMITS,
    ) -> None:
        """With `tls` senders show their certificate in the handshake, otherwise a gateway hands it on."""
        self._address = address
        self._receiver = receiver
        self._metrics = metrics
        self._clock = clock
        self._tls = tls
        self._limits = limits
        self._listener: HttpListener | None = None
        self._in_work: Counter[str] = Counter()
        self._requests = 0
        self.port = address.port
        """The port that it listens on."""

    async def start(self) -> None:
        """Listen. Raises OSError that names the address when it is taken."""
        app = web.Application()
        app.router.add_post("/{contract}/{manager}/event", self._counted)
        self._listener = HttpListener(self._address, app, tls=self._tls, limits=self._limits)
        await self._listener.start()
        self.port = self._listener.port
        _log.info("agents are served", address=str(self._address), port=self.port, tls=self._tls is not None)

    async def stop(self) -> None:
        if self._listener is not None:
            await self._listener.stop()
            self._listener = None

    async def _counted(self, request: web.Request) -> web.Response:
        metrics, began = self._metrics, self._clock.monotonic()
        metrics.requests.labels(LISTENER).inc()
        self._requests += 1
        metrics.inflight.labels(LISTENER).set(self._requests)
        try:
            if self._requests > MOST_REQUESTS:
                raise EventRefused(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests are in work")
            await self._receive(request)
        except EventRefused as refusal:
            metrics.errors.labels(LISTENER).inc()
            return _refused(refusal)
        finally:
            self._requests -= 1
            metrics.inflight.labels(LISTENER).set(self._requests)
            metrics.duration.labels(LISTENER).set(self._clock.monotonic() - began)
        return web.Response()

    async def _receive(self, request: web.Request) -> None:
        given = request.match_info
        if given["contract"] != CONTRACT:
            raise EventRefused(HTTPStatus.BAD_REQUEST, f"the path must begin with /{CONTRACT}/")
        if given["manager"] != MANAGED_BY_LIFECYCLE_MANAGER:
            raise EventRefused(HTTPStatus.NOT_FOUND, f"only events for {MANAGED_BY_LIFECYCLE_MANAGER} are taken here")
        sender = self._sender(request)
        if self._in_work[sender.runtime_id] >= MOST_OF_SENDER:
            raise EventRefused(HTTPStatus.TOO_MANY_REQUESTS, "too many requests of this runtime are in work")
        self._in_work[sender.runtime_id] += 1
        try:
            body = await self._body(request)
        finally:
            self._in_work[sender.runtime_id] -= 1
            if not self._in_work[sender.runtime_id]:
                del self._in_work[sender.runtime_id]
        self._receiver.receive(sender, body, path=request.path)

    def _sender(self, request: web.Request) -> EventSender:
        try:
            if self._tls is None:
                certificate = from_header(request.headers.getall(HEADER, []))
            else:
                transport = request.transport
                tls = transport.get_extra_info("ssl_object") if transport is not None else None
                certificate = from_connection(tls.getpeercert(binary_form=True) if tls is not None else None)
        except NoCertificate as error:
            raise EventRefused(HTTPStatus.UNAUTHORIZED, str(error)) from None
        return self._receiver.identify(certificate)

    async def _body(self, request: web.Request) -> bytes:
        """The body, as far as the limit allows. Raises EventRefused."""
        if (request.content_length or 0) <= LARGEST_BODY:
            try:
                body = await _read_bounded(request.content.read, LARGEST_BODY + 1)
            except web.HTTPRequestTimeout:
                raise EventRefused(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time") from None
            if len(body) <= LARGEST_BODY:
                return body
        self._metrics.oversized.labels(LISTENER).inc()
        raise EventRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is longer than {LARGEST_BODY} bytes")


async def _read_bounded(read: Callable[[int], Awaitable[bytes]], most: int) -> bytes:
    body = b""
    while len(body) < most and (piece := await read(most - len(body))):
        body += piece
    return body


def _refused(refusal: EventRefused) -> web.Response:
    headers = {}
    if refusal.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        headers = {"Retry-After": str(RETRY_AFTER)}
    if refusal.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        headers = {"Connection": "close"}  # the rest of the body is not read
    return web.Response(status=refusal.status, text=f"{refusal}\n", headers=headers)
