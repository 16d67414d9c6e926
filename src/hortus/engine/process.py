"""A process that runs a manager: uvloop, signals, and a garbage collector that leaves a large cache alone.

The collector costs a quarter of a big list's decoding when it runs every 700 allocations, and later walks every cached
object again and again. Cached objects are JSON: trees without cycles, freed by counting references. So it runs seldom,
and what exists after the start is taken out of its sight.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
import uvloop

from hortus.engine.manager import LeadershipLost, Manager
from hortus.engine.shutdown import cut_on_resume, stop_on_signals

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

T = TypeVar("T")

GC_THRESHOLDS = (50_000, 20, 50)
"""New containers before a young collection (CPython's default is 700), and collections before the older ones."""


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run `main` on uvloop with the collector's thresholds raised, and return its result."""

    async def whole() -> T:
        return await main()

    gc.set_threshold(*GC_THRESHOLDS)
    return uvloop.run(whole())


async def run_manager(manager: Manager) -> int:
    """Run `manager` until a signal; returns the exit code: 0, or 1 when leadership was lost."""
    freezer = asyncio.create_task(_freeze_when_started(manager), name="freeze")
    try:
        with stop_on_signals(manager.stop):
            cut_on_resume(manager.resumed)
            await manager.run()
    except LeadershipLost as error:
        _log.error("exiting, another may lead now", error=str(error))
        return 1
    finally:
        freezer.cancel()
    return 0


async def _freeze_when_started(manager: Manager) -> None:
    await manager.wait_started()
    gc.collect()
    gc.freeze()
