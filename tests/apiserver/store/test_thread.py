from __future__ import annotations

import asyncio
import threading

import pytest

from hortus.apiserver.store._thread import WriterThread


async def test_work_is_done_in_order_and_its_failure_is_its_callers() -> None:
    thread, done = WriterThread("writer"), []

    def fail() -> None:
        raise OSError("the disk is gone")

    first = asyncio.ensure_future(thread.run(done.append, 1))
    failing = asyncio.ensure_future(thread.run(fail))
    last = asyncio.ensure_future(thread.run(done.append, 2))
    await first
    with pytest.raises(OSError, match="the disk is gone"):
        await failing
    await last
    thread.end()
    assert done == [1, 2]


async def test_the_end_waits_for_work_that_its_caller_gave_up() -> None:
    thread, begun, go_on, done = WriterThread("writer"), threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        go_on.wait(30)
        done.append(1)

    running = asyncio.ensure_future(thread.run(work))
    await asyncio.to_thread(begun.wait, 30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    go_on.set()
    thread.end()
    assert done == [1]
