from __future__ import annotations

import asyncio
import threading
import time

import pytest
import uvloop

from hortus.apiserver.store import _thread as thread_module
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
        go_on.wait(60)
        done.append(1)

    running = asyncio.ensure_future(thread.run(work))
    await asyncio.to_thread(begun.wait, 60)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    go_on.set()
    thread.end()
    assert done == [1]


def test_a_busy_loop_sleeps_now_and_then_while_work_waits_and_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without such sleeps the thread was observed to starve for seconds, yet not on every machine."""
    slept, enough = [], threading.Event()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            enough.set()

    async def main() -> int:
        thread = WriterThread("writer")
        working = asyncio.ensure_future(thread.run(enough.wait, 60))
        while not working.done():
            await asyncio.sleep(0)
        thread.end()
        count = len(slept)
        end = time.perf_counter() + 10 * thread_module._PATIENCE
        while time.perf_counter() < end:
            await asyncio.sleep(0)
        return count

    monkeypatch.setattr(thread_module.time, "sleep", sleep)
    count = uvloop.run(main())
    assert enough.is_set()
    assert slept == [thread_module._GIVE_WAY] * count
