from __future__ import annotations

import asyncio

import pytest

from hortus.testing import FakeClock


async def test_sleepers_wake_in_order_each_at_its_own_instant() -> None:
    clock = FakeClock(monotonic=0.0, now=100.0)
    seen: list[tuple[str, float, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        seen.append((name, clock.monotonic(), clock.now()))

    tasks = [asyncio.create_task(sleeper(name, seconds)) for name, seconds in (("b", 2), ("a", 1), ("c", 2))]
    await clock.advance(5)
    assert seen == [("a", 1, 101), ("b", 2, 102), ("c", 2, 102)]
    assert clock.monotonic() == 5
    await asyncio.gather(*tasks)


async def test_a_loop_that_sleeps_again_is_followed() -> None:
    clock = FakeClock()
    ticks: list[float] = []

    async def ticker() -> None:
        while True:
            await clock.sleep(1)
            ticks.append(clock.monotonic())

    task = asyncio.create_task(ticker())
    await clock.advance(3.5)
    assert ticks == [1001, 1002, 1003]
    assert clock.next_due == pytest.approx(0.5)
    task.cancel()
    await clock.settle()
    assert clock.sleepers == 0


async def test_a_jump_moves_the_wall_and_nothing_else() -> None:
    clock = FakeClock(now=0.0, monotonic=0.0)
    other = clock.skewed(300)
    clock.jump(3600)
    assert (clock.now(), clock.monotonic()) == (3600, 0)
    assert (other.now(), other.monotonic()) == (3900, 0)


async def test_a_stalled_process_wakes_to_the_end_of_the_stall() -> None:
    clock = FakeClock(monotonic=0.0)
    seen: list[float] = []
    for seconds in (1, 2, 30):
        clock.call_later(seconds, lambda: seen.append(clock.monotonic()))
    await clock.stall(10)
    assert seen == [10, 10]


async def test_a_cancelled_timer_is_silent() -> None:
    clock = FakeClock()
    timer = clock.call_later(1, lambda: pytest.fail("called"))
    timer.cancel()
    await clock.advance(2)


async def test_a_loop_that_spins_is_reported() -> None:
    clock = FakeClock()

    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    task = asyncio.create_task(spin())
    with pytest.raises(RuntimeError, match="spins without sleeping"):
        await clock.advance(1)
    task.cancel()
