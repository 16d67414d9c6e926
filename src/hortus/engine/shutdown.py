"""SIGINT and SIGTERM: the first asks for a graceful stop, the second ends the process at once.

That is what Kubernetes and people at a terminal expect of a controller, Go's among them. SIGCONT: the process was
stopped and goes on, which is when it has to find out whether its work is still its own.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

SIGNALS = (signal.SIGINT, signal.SIGTERM)


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


def cut_on_resume(resumed: Callable[[], None]) -> None:
    """Have `resumed` called when this process goes on after SIGSTOP, between two steps of what it was doing.

    Not by the event loop: its turn comes after what was written has been sent.
    """
    signal.signal(signal.SIGCONT, lambda number, frame: resumed())
