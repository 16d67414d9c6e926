"""A process that runs a manager: uvloop, logs, signals, and a garbage collector that leaves a large cache alone.

SIGINT and SIGTERM ask for a graceful stop, the second of them ends the process at once, as Kubernetes and people at a
terminal expect. After SIGCONT the process finds out whether its work is still its own.

The collector costs a quarter of a big list's decoding when it runs every 700 allocations, and later walks every cached
object again and again. Cached objects are JSON: trees without cycles, freed by counting references. So it runs seldom,
and what exists after the start is taken out of its sight.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import structlog
import uvloop

from hortus.engine.logging import configure_by_default
from hortus.engine.manager import Manager
from hortus.engine.runnables import LeadershipLost

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

T = TypeVar("T")

_OTHER_FILES = 500
"""Files of a process besides its connections to clusters."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
ORPHAN_GRACE = 2.0
"""Seconds in which a process of `hortus up` ends whose supervisor is gone. On an idle machine each needs about half a
second, unless it waits for an API server that ends at the same time."""
GC_THRESHOLDS = (50_000, 20, 50)
"""New containers before a young collection (CPython's default is 700), and collections before the older ones."""


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run `main` on uvloop with the collector's thresholds raised, and return its result.

    Logs are configured as in `configure_logging` unless the program has done so, in its own way or in ours.
    """

    async def whole() -> T:
        return await main()

    configure_by_default()
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


def files_within(number: int) -> int:
    """`number`, or as many files as the process may open besides those that it needs anyway.

    The soft limit is raised up to the hard one, as programs in Go do it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft < wanted:
            _log.info("fewer connections than configured: see RLIMIT_NOFILE", configured=number, files=soft)
    return number if soft == resource.RLIM_INFINITY else min(number, max(soft - _OTHER_FILES, soft // 2))


@contextmanager
def stop_on_signals(stop: Callable[[], None], *, die: Callable[[int], object] = os._exit) -> Iterator[None]:
    """While inside, the first signal calls `stop` on the running loop and the second `die(1)`."""
    loop = asyncio.get_running_loop()
    asked = False

    def on_signal(number: signal.Signals) -> None:
        nonlocal asked
        if asked:
            _log.warning("second signal, ending at once", signal=number.name)
            die(1)
            return
        asked = True
        _log.info("stopping on a signal", signal=number.name)
        stop()

    for number in SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def stop_with_supervisor(
    stop: Callable[[], None], *, heard: Callable[[], None] = lambda: None, within: float | None = None
) -> None:
    """Call `stop` when standard input ends, which is when the parent of this process is gone, and `heard` at a line.

    Nobody is left then who ends a process that does not stop. With `within` the system does, by SIGALRM after so many
    seconds, whatever its loop and its threads are doing.
    """
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
    os.set_blocking(descriptor, False)

    def readable() -> None:
        if os.read(descriptor, 4096):
            heard()
            return
        loop.remove_reader(descriptor)
        if within is not None:
            signal.setitimer(signal.ITIMER_REAL, within)
        stop()
        _log.warning("stopping, the supervisor is gone")

    loop.add_reader(descriptor, readable)


def cut_on_resume(resumed: Callable[[], None]) -> None:
    """Call `resumed` when this process goes on after SIGSTOP, between two steps of what it was doing.

    Not by the event loop: its turn comes after what was written has been sent.
    """
    signal.signal(signal.SIGCONT, lambda number, frame: resumed())
