"""A time limit on a clock that tests can move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from hortus.kube.clock import Clock

T = TypeVar("T")


class Interrupted(OSError):
    """The awaited work was cancelled, and not by the canceller of the task that waits: a failure like any other."""

    def __init__(self) -> None:
        super().__init__("the work that was waited for was cancelled by somebody else")


def being_cancelled() -> bool:
    """True when the current task itself is asked to end: a CancelledError can also come from what it waits for."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


async def within(clock: Clock, seconds: float, step: Awaitable[T]) -> T:
    """The result of `step`; it is cancelled, and TimeoutError raised, when it takes longer than `seconds`.

    Raises Interrupted when somebody else cancels `step`.
    """
    task = asyncio.ensure_future(step)
    late = False

    def cut_off() -> None:
        nonlocal late
        late = task.cancel()

    timer = clock.call_later(seconds, cut_off)
    try:
        return await task
    except asyncio.CancelledError:
        if task.cancelled() and not being_cancelled():
            if late:
                raise TimeoutError(f"not done within {seconds:g} s") from None
            raise Interrupted from None
        task.cancel()
        raise
    finally:
        timer.cancel()
