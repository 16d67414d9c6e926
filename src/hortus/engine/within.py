"""A time limit on a clock that tests can move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from hortus.kube.clock import Clock

T = TypeVar("T")


async def within(clock: Clock, seconds: float, step: Awaitable[T]) -> T:
    """The result of `step`; it is cancelled, and TimeoutError raised, when it takes longer than `seconds`."""
    task = asyncio.ensure_future(step)
    late = False

    def cut_off() -> None:
        nonlocal late
        late = task.cancel()

    timer = clock.call_later(seconds, cut_off)
    try:
        return await task
    except asyncio.CancelledError:
        if late and task.cancelled() and not _current_is_cancelled():
            raise TimeoutError(f"not done within {seconds:g} s") from None
        task.cancel()
        raise
    finally:
        timer.cancel()


def _current_is_cancelled() -> bool:
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0
