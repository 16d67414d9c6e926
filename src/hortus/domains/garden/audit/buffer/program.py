"""The process of a receiver: serves until a signal."""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from hortus.domains.garden.audit.buffer.composition import running_buffer
from hortus.domains.garden.audit.buffer.settings import read_settings
from hortus.engine.process import run, stop_on_signals
from hortus.kube.clock import SystemClock

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def serve(path: Path) -> int:
    """Serves as the file at `path` says; returns the exit code. Raises SpoolError, OSError, ValueError."""
    settings = read_settings(path)

    async def serving() -> int:
        stop = asyncio.Event()
        faults: list[BaseException] = []

        def failed(error: BaseException) -> None:
            _log.error("the receiver ends on a fault", exc_info=error)
            faults.append(error)
            stop.set()

        async with running_buffer(settings, clock=SystemClock(), failed=failed) as running:
            with stop_on_signals(stop.set):
                _log.info(
                    "receiving audit events",
                    port=running.webhook.port,
                    metrics_port=running.health.port if running.health else 0,
                    spool=running.spool.identity.id,
                    sequence=running.spool.committed.sequence,
                    digest=running.spool.committed.digest,
                )
                await stop.wait()
        return 1 if faults else 0

    return run(serving)
