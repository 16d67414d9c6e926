"""Virtual time: it passes when nothing is left to do, and stands still for the world outside."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from hortus.simulation.fork import VirtualClock, VirtualLoop

DAY = 86400.0


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.close()


def test_a_month_passes_in_the_time_that_its_work_takes(loop: VirtualLoop) -> None:
    clock = VirtualClock(loop, began=1_700_000_000.0)
    rung: list[float] = []

    async def work() -> None:
        clock.call_later(3 * DAY, lambda: rung.append(clock.now()))
        async with asyncio.timeout(31 * DAY):
            await clock.sleep(30 * DAY)

    began = time.monotonic()
    loop.run_until_complete(work())
    assert rung == [1_700_000_000.0 + 3 * DAY]
    assert clock.monotonic() == 30 * DAY
    assert time.monotonic() - began < 5.0


def test_a_timeout_comes_at_its_virtual_time(loop: VirtualLoop) -> None:
    async def work() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(DAY):
                await asyncio.Event().wait()
        return loop.time()

    assert loop.run_until_complete(work()) == DAY


def test_work_for_threads_is_done_at_once_on_the_loop(loop: VirtualLoop) -> None:
    async def work() -> tuple[int, float]:
        return await asyncio.to_thread(threading.get_ident), loop.time()

    assert loop.run_until_complete(work()) == (threading.get_ident(), 0.0)


def test_errors_of_such_work_reach_its_caller(loop: VirtualLoop) -> None:
    def fail() -> None:
        raise ValueError("broken")

    async def work() -> None:
        await asyncio.to_thread(fail)

    with pytest.raises(ValueError, match="broken"):
        loop.run_until_complete(work())


def test_time_stands_still_for_answers_from_outside_which_come_in_the_order_of_the_questions(
    loop: VirtualLoop,
) -> None:
    other = asyncio.new_event_loop()
    thread = threading.Thread(target=other.run_forever)
    thread.start()
    first_may_end, order = asyncio.Event(), []

    async def first() -> str:
        await first_may_end.wait()
        return "first"

    async def second() -> str:
        first_may_end.set()
        return "second"

    async def ask(step: object) -> None:
        answer = await loop.outside(asyncio.run_coroutine_threadsafe(step, other))  # type: ignore[arg-type]
        order.append((answer, loop.time()))

    async def work() -> None:
        loop.call_later(1.0, order.append, "timer")
        await asyncio.gather(ask(first()), ask(second()))
        await VirtualClock(loop, began=0.0).sleep(2.0)

    try:
        loop.run_until_complete(work())
    finally:
        other.call_soon_threadsafe(other.stop)
        thread.join()
        other.close()
    assert order == [("first", 0.0), ("second", 0.0), "timer"]


def test_an_offline_loop_refuses_servers_outside(loop: VirtualLoop) -> None:
    loop.offline = True

    async def work() -> None:
        await asyncio.open_connection("127.0.0.1", 9)

    with pytest.raises(ConnectionRefusedError, match="nothing outside of the fleet"):
        loop.run_until_complete(work())
