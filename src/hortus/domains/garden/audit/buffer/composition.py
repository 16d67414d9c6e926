"""A receiver from its settings: the spool, its writer, the webhook, and a delivery for each sink."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web
from prometheus_client import CollectorRegistry

from hortus.domains.garden.audit.buffer.committing import Committer
from hortus.domains.garden.audit.buffer.delivering import SinkDelivery
from hortus.domains.garden.audit.buffer.making import sink_of
from hortus.domains.garden.audit.buffer.metrics import BufferMetrics
from hortus.domains.garden.audit.buffer.server import RECEIVER_LIMITS, AuditWebhook, ReceiverTls
from hortus.domains.garden.audit.buffer.settings import BufferSettings, BufferSettingsError, SinkPart, address, size
from hortus.domains.garden.audit.buffer.sinks import AuditSink
from hortus.domains.garden.audit.buffer.spool import HashChain, Spool
from hortus.engine.files import FileWatch
from hortus.engine.health import HealthServer, serve_metrics
from hortus.kube.clock import Clock
from hortus.kube.listeners import ListenerLimits

_SHORTEST_KEY = 32
_HEALTH = "/api/v1/health"
"""The path that the health check of the audit extension asks."""


class RunningBuffer(NamedTuple):
    """A receiver that serves and delivers."""

    spool: Spool
    deliveries: Mapping[str, SinkDelivery]
    webhook: AuditWebhook
    health: HealthServer | None


def chain_of(key_file: Path | None) -> HashChain:
    """The chain with the key in a file. Raises BufferSettingsError, OSError."""
    if key_file is None:
        return HashChain()
    key = key_file.read_bytes().strip()
    if len(key) < _SHORTEST_KEY:
        raise BufferSettingsError(f"{key_file}: the key has {len(key)} bytes, {_SHORTEST_KEY} are required")
    return HashChain(key)


@asynccontextmanager
async def running_buffer(
    settings: BufferSettings,
    *,
    clock: Clock,
    failed: Callable[[BaseException], object],
    limits: ListenerLimits = RECEIVER_LIMITS,
) -> AsyncIterator[RunningBuffer]:
    """`failed` is called with a fault after which the receiver does not work.

    Raises BufferSettingsError, SpoolError, OSError, ValueError when it cannot start.
    """
    metrics = BufferMetrics(CollectorRegistry())
    async with AsyncExitStack() as stack:
        spool = Spool(
            settings.spool.folder,
            settings.bounds(),
            sinks=[part.name for part in settings.sinks],
            chain=chain_of(settings.spool.key_file),
            clock=clock,
        )
        stack.callback(spool.close)
        tls = ReceiverTls(settings.tls) if settings.tls is not None else None
        committer = Committer(spool, settings.sync, clock=clock)
        committer.start()
        stack.push_async_callback(committer.stop)
        tasks = _Tasks(stack, failed)
        deliveries: dict[str, SinkDelivery] = {}
        for part in settings.sinks:
            sink = sink_of(part, clock)
            stack.push_async_callback(sink.close)
            deliveries[part.name] = _delivery(part, sink, spool, committer, metrics, clock)
            tasks.add(deliveries[part.name].run())
        committer.listeners = tuple(one.news.set for one in deliveries.values())
        _follow(metrics, spool, deliveries)
        if tls is not None and settings.tls is not None:
            tasks.add(FileWatch(settings.tls.certificate_file, tls.refresh).run())
        listen = address(settings.listen, "listen")
        assert listen is not None, "the settings are checked"
        webhook = AuditWebhook(
            listen, committer, metrics, tls=tls, hold=settings.hold, largest=spool.largest_payload, limits=limits
        )
        health = await _health(stack, settings, spool, metrics)
        await webhook.start()
        stack.push_async_callback(webhook.stop)
        yield RunningBuffer(spool, deliveries, webhook, health)


def _delivery(
    part: SinkPart, sink: AuditSink, spool: Spool, committer: Committer, metrics: BufferMetrics, clock: Clock
) -> SinkDelivery:
    return SinkDelivery(
        part.name,
        sink,
        spool,
        committer,
        metrics,
        clock=clock,
        batch_bytes=size(part.batch_bytes, "batchBytes"),
        linger=part.linger,
    )


class _Tasks:
    """Background work of a receiver. Work that ends by itself is a fault, which `failed` is called with."""

    def __init__(self, stack: AsyncExitStack, failed: Callable[[BaseException], object]) -> None:
        self._stack = stack
        self._failed = failed

    def add(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)

        async def end() -> None:
            task.cancel()
            await asyncio.wait([task])

        self._stack.push_async_callback(end)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._failed(task.exception() or RuntimeError("background work has ended"))


async def _health(
    stack: AsyncExitStack, settings: BufferSettings, spool: Spool, metrics: BufferMetrics
) -> HealthServer | None:
    """The server of probes and metrics."""
    place = address(settings.metrics, "metrics")
    if place is None:
        return None
    health = HealthServer(place)

    def has_room() -> None:
        if spool.full:
            raise RuntimeError("the spool is full")

    health.readiness.add("spool", has_room)

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=500 if spool.full else 200, text="ok\n")

    health.get(_HEALTH, answer)
    serve_metrics(health, metrics.registry)
    await health.start()
    stack.push_async_callback(health.stop)
    return health


def _follow(metrics: BufferMetrics, spool: Spool, deliveries: Mapping[str, SinkDelivery]) -> None:
    metrics.follow("hortus_audit_spool_bytes", "Bytes of all segments.", lambda: float(spool.bytes_used()))
    metrics.follow(
        "hortus_audit_spool_sequence",
        "Sequence number behind the last line that is kept; it never goes back.",
        lambda: float(spool.committed.sequence),
    )
    metrics.follow("hortus_audit_dropped_events", "Events dropped since the start.", lambda: float(spool.dropped))
    for name, delivery in deliveries.items():
        metrics.follow_sink(name, lambda one=delivery: float(one.waiting))  # type: ignore[misc]
