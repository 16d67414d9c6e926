from __future__ import annotations

import asyncio

import pytest

from hortus.engine.within import Interrupted, within
from hortus.testing import FakeClock


async def test_what_takes_too_long_is_cancelled_and_a_timeout() -> None:
    clock, ended = FakeClock(), asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.create_task(within(clock, 5, slow()))
    await clock.advance(5)
    with pytest.raises(TimeoutError, match="not done within 5 s"):
        await waiting
    assert ended.is_set()


async def test_what_somebody_else_cancels_is_interrupted_and_one_s_own_end_is_the_end() -> None:
    clock = FakeClock()
    step = asyncio.create_task(asyncio.Event().wait())
    waiting = asyncio.create_task(within(clock, 5, step))
    await clock.settle()
    step.cancel()
    with pytest.raises(Interrupted):
        await waiting

    step = asyncio.create_task(asyncio.Event().wait())
    waiting = asyncio.create_task(within(clock, 5, step))
    await clock.settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert step.cancelled()
    assert clock.sleepers == 0
