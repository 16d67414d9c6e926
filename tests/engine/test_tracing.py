"""Traces of reconciles, as an OTLP receiver gets them; and that nothing of it is needed when nobody asks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hortus.engine import Cache, Manager, Result, StepError, Watch
from hortus.engine.tracing import TracedCalls, Tracing
from hortus.kube.objects import ObjectKey
from hortus.testing import FakeClock

from .fake_api import FakeApi


class Calls:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.seen.append((method, host, code))


class Reconciler:
    """Makes two calls for `well`, fails for others."""

    def __init__(self, calls: TracedCalls) -> None:
        self._calls = calls

    async def reconcile(self, key: ObjectKey) -> Result | None:
        self._calls.answered("GET", "api:443", "200", 0.25)
        await asyncio.sleep(0)
        if key.name != "well":
            raise StepError("the server said c4n4ry", after=60.0)
        self._calls.answered("PATCH", "api:443", "503", 0.5)
        return None


async def worked(tracing: Tracing, calls: Calls, *names: str) -> None:
    clock, cache = FakeClock(), Cache("things")
    cache.replace([{"metadata": {"name": name, "namespace": "ns", "resourceVersion": "1"}} for name in names], 1)
    manager = Manager(FakeApi(), clock=clock, tracing=tracing)
    made = manager.controller("things", Reconciler(TracedCalls(tracing, clock, calls)), sources=[Watch(cache)])
    async with manager.running():
        await made.queue.join()


def shown(spans: Sequence[ReadableSpan]) -> list[tuple[str, str, dict[str, object]]]:
    return [(span.name, span.status.status_code.name, dict(span.attributes or {})) for span in spans]


async def test_a_reconcile_is_a_span_and_its_calls_lie_in_it() -> None:
    memory, provider, calls = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False), Calls()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    await worked(Tracing(provider), calls, "well")
    get, patch, whole = memory.get_finished_spans()
    about = {"k8s.controller.name": "things", "k8s.namespace.name": "ns", "k8s.object.name": "well"}
    call = {"http.request.method": "GET", "server.address": "api:443", "http.response.status_code": "200"}
    assert shown([whole]) == [("reconcile things", "UNSET", about)]
    assert shown([get]) == [("GET", "UNSET", call)]
    assert patch.status.status_code.name == "ERROR"
    for span, seconds in ((get, 0.25), (patch, 0.5)):
        assert span.parent is not None and whole.context is not None
        assert span.parent.span_id == whole.context.span_id
        assert span.start_time is not None and span.end_time is not None
        assert span.end_time - span.start_time == pytest.approx(seconds * 1e9, abs=1000)
    assert calls.seen == [("GET", "api:443", "200"), ("PATCH", "api:443", "503")]


async def test_an_error_appears_by_its_class_and_not_by_its_words() -> None:
    memory, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    await worked(Tracing(provider), Calls(), "bad")
    [_, whole] = memory.get_finished_spans()
    assert (whole.status.status_code.name, whole.status.description) == ("ERROR", "StepError")
    assert whole.events == ()
    assert "c4n4ry" not in whole.to_json()


async def test_a_call_outside_of_a_reconcile_is_no_span() -> None:
    memory, provider, calls = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False), Calls()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    TracedCalls(Tracing(provider), FakeClock(), calls).answered("GET", "api:443", "200", 0.1)
    assert memory.get_finished_spans() == ()
    assert calls.seen == [("GET", "api:443", "200")]


@asynccontextmanager
async def receiver() -> AsyncIterator[tuple[str, list[Span]]]:
    """An OTLP receiver, and what it has got."""
    spans: list[Span] = []

    async def take(request: web.Request) -> web.Response:
        sent = ExportTraceServiceRequest.FromString(await request.read())
        spans.extend(span for each in sent.resource_spans for scope in each.scope_spans for span in scope.spans)
        return web.Response(content_type="application/x-protobuf")

    app = web.Application()
    app.router.add_post("/v1/traces", take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", spans
    finally:
        await runner.cleanup()


async def test_a_receiver_has_everything_once_the_manager_has_stopped() -> None:
    async with receiver() as (endpoint, spans):
        await worked(Tracing.to(endpoint), Calls(), "well", "bad")
    assert sorted(span.name for span in spans) == ["GET", "GET", "PATCH", "reconcile things", "reconcile things"]


def test_nothing_of_it_is_imported_when_nobody_asks() -> None:
    text = "import sys, hortus.cli.program; print([name for name in sys.modules if name.startswith('opentelemetry')])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_where_the_libraries_are_missing_the_flag_says_what_to_install() -> None:
    text = (
        "import sys; sys.modules['opentelemetry.exporter.otlp.proto.http.trace_exporter'] = None\n"
        "from hortus.cli.main import main; sys.argv = ['hortus', 'run', '--tracing-endpoint=http://x']; main()"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "error: --tracing-endpoint http://x: " in done.stderr
    assert "install hortus[tracing]" in done.stderr
