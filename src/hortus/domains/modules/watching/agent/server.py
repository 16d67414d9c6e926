"""The agent's two servers: the webhook over HTTPS, and metrics and health over HTTP."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog
from aiohttp import web

from hortus.domains.modules.watching.agent.buffer import EventBuffer
from hortus.domains.modules.watching.agent.certificates import CertificateFiles
from hortus.domains.modules.watching.agent.delivery import Deliverer
from hortus.domains.modules.watching.agent.metrics import INVALID_SUBRESOURCE, AgentMetrics
from hortus.domains.modules.watching.agent.reviews import INVALID_SUBRESOURCE as SUBRESOURCE_PROBLEM
from hortus.domains.modules.watching.agent.reviews import NoReview, judge
from hortus.domains.modules.watching.agent.settings import AgentSettings
from hortus.engine.health import Address, HealthServer, serve_metrics
from hortus.engine.serving.listening import HttpListener
from hortus.kube.clock import Clock, Timer
from hortus.kube.listeners import LIMITS, ListenerLimits

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

LARGEST_REVIEW = 8 * 1024 * 1024
"""Bytes: both objects of an update at etcd's limit of 1.5 MiB, with room."""
REFRESH = 5.0
"""Seconds between two looks at the certificate files; a Secret volume is itself up to a minute late."""
_MANAGER = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?")


class Agent:
    """A running agent; made by `running`."""

    def __init__(
        self,
        buffer: EventBuffer,
        certificates: CertificateFiles,
        deliverer: Deliverer,
        metrics: AgentMetrics,
        *,
        clock: Clock,
    ) -> None:
        self.buffer = buffer
        self.certificates = certificates
        self.webhook_port = 0
        self.metrics_port = 0
        self._deliverer = deliverer
        self._metrics = metrics
        self._clock = clock
        self._timer: Timer | None = None

    async def validate(self, request: web.Request) -> web.Response:
        """Answer one AdmissionReview, and keep its event."""
        began = self._clock.monotonic()
        self._metrics.reviews.inc()
        given = request.match_info
        manager = given["manager"]
        try:
            if not _MANAGER.fullmatch(manager):
                raise NoReview(f"the path names no manager: {manager!r}")
            verdict = judge(await request.read())
        except NoReview as error:
            self._metrics.review_errors.inc()
            return web.Response(status=400, text=f"{error}\n")
        if verdict.problem:
            self._metrics.review_errors.inc()
            if verdict.problem.startswith(SUBRESOURCE_PROBLEM):
                self._metrics.failures.labels(INVALID_SUBRESOURCE).inc()
            _log.warning("a review could not be decided", manager=manager, error=verdict.problem)
        if verdict.event is not None:
            if self.buffer.add(manager, verdict.event):
                self._deliverer.wake(manager)
            else:
                _log.warning("the buffer is full, an event is dropped", manager=manager)
        self._metrics.duration.set(self._clock.monotonic() - began)
        return web.Response(body=verdict.review, content_type="application/json")

    def follow_files(self) -> None:
        """Take over changed certificate files from now on."""
        self.certificates.refresh()
        self._timer = self._clock.call_later(REFRESH, self.follow_files)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    # Health checks.

    def check_certificates(self) -> None:
        """Raises RuntimeError where the files on disk are not those in use."""
        if self.certificates.problem:
            raise RuntimeError(self.certificates.problem)

    def check_buffer(self) -> None:
        """Raises RuntimeError where events should be on disk and are not."""
        if self.buffer.problem:
            raise RuntimeError(self.buffer.problem)


@asynccontextmanager
async def running(
    settings: AgentSettings,
    metrics: AgentMetrics,
    buffer: EventBuffer,
    *,
    clock: Clock,
    limits: ListenerLimits = LIMITS,
) -> AsyncIterator[Agent]:
    """An agent that serves and delivers. Raises OSError, ValueError when it cannot start."""
    certificates = CertificateFiles(settings)
    async with AsyncExitStack() as stack:
        deliverer = await stack.enter_async_context(Deliverer(settings, buffer, certificates, metrics, clock=clock))
        agent = Agent(buffer, certificates, deliverer, metrics, clock=clock)
        host = settings.bind_host or None
        health = HealthServer(Address(host, settings.metrics_port), limits=limits)
        health.readiness.add("certificates", agent.check_certificates)
        health.readiness.add("buffer", agent.check_buffer)
        serve_metrics(health, metrics.registry)
        await health.start()
        stack.push_async_callback(health.stop)

        app = web.Application(client_max_size=LARGEST_REVIEW)
        app.router.add_post("/validate/{manager}", agent.validate)
        listener = HttpListener(Address(host, settings.webhook_port), app, tls=certificates.server, limits=limits)
        await stack.enter_async_context(listener)
        agent.follow_files()
        stack.callback(agent.stop)
        agent.webhook_port, agent.metrics_port = listener.port, health.port
        yield agent
