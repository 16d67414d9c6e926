"""Traces of reconciles, by OpenTelemetry, when asked for: a span for each reconcile, and in it one for each call.

Needs the extra `tracing`. Without an endpoint none of its libraries is imported and a reconcile costs nothing more.
Spans carry the controller, the object's namespace and name, and what came of it; of a call its method, host and
code. Errors appear by their class alone: messages may quote what a server said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hortus.engine.controller import Reconciler
from hortus.engine.outcomes import Result
from hortus.kube import RequestObserver
from hortus.kube.clock import Clock
from hortus.kube.objects import ObjectKey

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

_NANOSECONDS = 1_000_000_000


class TracingUnavailable(Exception):
    """The libraries for tracing are not installed."""


class Tracing:
    """Makes spans with one provider; `stop` sends what is left."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self.tracer: Tracer = provider.get_tracer("hortus")

    @classmethod
    def to(cls, endpoint: str) -> Tracing:
        """Spans go to an OTLP receiver over HTTP, in batches from a thread. Raises TracingUnavailable."""
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise TracingUnavailable(f"{error.name} is not installed; install hortus[tracing]") from None
        provider = TracerProvider(resource=Resource.create({"service.name": "hortus"}))
        url = endpoint.rstrip("/")
        if not url.endswith("/v1/traces"):
            url += "/v1/traces"
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url)))
        return cls(provider)

    @contextmanager
    def reconcile(self, controller: str, key: ObjectKey) -> Iterator[None]:
        """A span around one reconcile; an exception is recorded by its class."""
        from opentelemetry.trace import Status, StatusCode

        attributes = {
            "k8s.controller.name": controller,
            "k8s.namespace.name": key.namespace,
            "k8s.object.name": key.name,
        }
        with self.tracer.start_as_current_span(
            f"reconcile {controller}", attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except BaseException as error:
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                span.set_attribute("error.type", type(error).__name__)
                raise

    async def start(self) -> None:
        """Has no effect; a manager starts what it stops."""

    async def stop(self) -> None:
        """Send what is left, and end the thread that sends."""
        await asyncio.to_thread(self._provider.shutdown)


class TracedReconciler:
    """Another reconciler, each of whose reconciles is a span."""

    def __init__(self, tracing: Tracing, controller: str, reconciler: Reconciler) -> None:
        self._tracing = tracing
        self._controller = controller
        self._reconciler = reconciler

    async def reconcile(self, key: ObjectKey) -> Result | None:
        with self._tracing.reconcile(self._controller, key):
            return await self._reconciler.reconcile(key)


class TracedCalls:
    """Passes calls on to another observer, and makes a span of each call of a reconcile that is traced."""

    def __init__(self, tracing: Tracing, clock: Clock, then: RequestObserver) -> None:
        self._tracer = tracing.tracer
        self._clock = clock
        self._then = then

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode, get_current_span

        self._then.answered(method, host, code, seconds)
        if not get_current_span().is_recording():
            return
        end = self._clock.now()
        span = self._tracer.start_span(
            method,
            kind=SpanKind.CLIENT,
            start_time=int((end - seconds) * _NANOSECONDS),
            attributes={"http.request.method": method, "server.address": host, "http.response.status_code": code},
        )
        if code.startswith(("5", "<")):
            span.set_status(Status(StatusCode.ERROR))
        span.end(int(end * _NANOSECONDS))


__all__ = ["TracedCalls", "TracedReconciler", "Tracing", "TracingUnavailable"]
