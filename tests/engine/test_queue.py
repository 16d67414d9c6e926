from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.engine.backoff import Backoff
from hortus.engine.lanes import Flows
from hortus.engine.metrics import QueueMeter
from hortus.engine.queue import BAND_EVERY, FREE_STEPS, Priority, Queue, QueueClosed
from hortus.testing import FakeClock


def queue_of(clock: FakeClock, **options: object) -> Queue[str]:
    return Queue(clock=clock, random=Random(0), **options)  # type: ignore[arg-type]


async def test_a_key_added_often_is_handed_out_once() -> None:
    queue = queue_of(FakeClock())
    for _ in range(5):
        queue.add("a")
    assert queue.take() == "a"
    assert queue.take() is None


async def test_people_come_before_retries_before_the_initial_list_before_resyncs() -> None:
    queue = queue_of(FakeClock())
    for name, priority in (("d", 3), ("c", 2), ("b", 1), ("a", 0)):
        queue.add(name, priority=priority)
    assert [queue.take() for _ in range(4)] == ["a", "b", "c", "d"]


async def test_an_event_moves_a_waiting_resync_up_and_a_resync_moves_nothing_down() -> None:
    queue = queue_of(FakeClock())
    queue.add("first", priority=Priority.RETRY)
    queue.add("second", priority=Priority.RESYNC)
    queue.add("second", priority=Priority.EVENT)
    queue.add("second", priority=Priority.RESYNC)
    assert [queue.take(), queue.take()] == ["second", "first"]


@pytest.mark.parametrize("flood", list(Priority))
@pytest.mark.parametrize("patient", list(Priority))
async def test_no_flood_of_a_band_starves_another(flood: Priority, patient: Priority) -> None:
    if flood is patient:
        return
    queue = queue_of(FakeClock())
    for number in range(1000):
        queue.add(f"resync {number}", priority=flood)
    queue.add("patient", priority=patient)
    served = 0
    while (key := queue.take()) != "patient":
        assert key is not None
        queue.done(key)
        queue.add(key, priority=flood)
        served += 1
    assert served < BAND_EVERY


BANDS = st.dictionaries(st.sampled_from(list(Priority)), st.integers(1, 60), min_size=1)


@given(BANDS, st.lists(st.sampled_from(list(Priority)), max_size=60), st.booleans(), st.sampled_from(list(Priority)))
def test_the_key_at_place_p_of_its_band_waits_for_a_bounded_number_of_others(
    bands: dict[Priority, int], before: list[Priority], fair: bool, flood: Priority
) -> None:
    """The bound holds whatever was taken before, and however many keys of one other band are added meanwhile."""
    flows = Flows[str](lambda key: key[0]) if fair else None
    queue: Queue[str] = Queue(clock=FakeClock(monotonic=0.0, now=0.0), flows=flows, random=Random(0))
    for number, priority in enumerate(before):
        queue.add(f"x before {number}", priority=priority)
    while (key := queue.take()) is not None:
        queue.done(key)
    place: dict[str, int] = {}
    for priority, count in bands.items():
        for number in range(count):
            key = f"x {priority} {number}"
            queue.add(key, priority=priority)
            place[key] = number + 1
    taken = 0
    while place:
        queue.add(f"x flood {taken}", priority=flood)
        key = queue.take()
        assert key is not None
        taken += 1
        queue.done(key)
        if key in place:
            assert taken <= BAND_EVERY * place.pop(key)


async def test_a_key_is_never_in_two_workers_and_comes_again_when_added_meanwhile() -> None:
    queue = queue_of(FakeClock())
    queue.add("a")
    assert queue.take() == "a"
    queue.add("a", priority=Priority.RESYNC)
    queue.add("a", priority=Priority.EVENT)
    queue.add("b", priority=Priority.RETRY)
    assert queue.take() == "b"
    assert queue.take() is None
    queue.done("a")
    assert queue.take() == "a"
    queue.done("a")
    assert queue.take() is None


async def test_delays_come_in_time_behind_one_timer() -> None:
    clock = FakeClock()
    queue = queue_of(clock)
    for second in range(1000, 0, -1):
        queue.add(f"k{second}", after=float(second))
    assert (queue.delayed, clock.sleepers) == (1000, 1)
    await clock.advance(2.5)
    assert [queue.take(), queue.take(), queue.take()] == ["k1", "k2", None]
    queue.close()
    assert clock.sleepers == 0


async def test_the_earliest_of_several_delays_counts() -> None:
    clock = FakeClock()
    queue = queue_of(clock)
    queue.add("a", after=10)
    queue.add("a", after=3)
    queue.add("a", after=7)
    assert queue.due_in("a") == pytest.approx(3)
    await clock.advance(3)
    assert queue.take() == "a"
    queue.done("a")
    await clock.advance(60)
    assert queue.take() is None


async def test_a_run_replaces_what_was_asked_for_before_it() -> None:
    clock = FakeClock()
    queue = queue_of(clock)
    queue.add("a", after=60)
    queue.add("a")
    assert queue.take() == "a"
    queue.add("a", after=3600)
    queue.done("a")
    await clock.advance(60)
    assert queue.take() is None
    assert queue.due_in("a") == pytest.approx(3540)


async def test_repeatedly_postponed_keys_do_not_pile_up() -> None:
    clock = FakeClock()
    queue = queue_of(clock)
    for _ in range(10_000):
        queue.add("a", after=3600)
        queue.add("a")
        queue.take()
        queue.done("a")
    assert len(queue._delays._heap) < 200


async def test_failures_back_off_exponentially_and_success_forgives() -> None:
    queue = queue_of(FakeClock(), backoff=Backoff(first=1, cap=10, jitter=0))
    assert [queue.retry("a") for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    assert queue.failures("a") == 6
    queue.forget("a")
    assert queue.retry("a") == 1


async def test_ten_thousand_failures_of_one_second_do_not_come_back_in_one_second() -> None:
    clock = FakeClock()
    queue = queue_of(clock, backoff=Backoff(first=100, cap=1000, jitter=0.1))
    for number in range(10_000):
        queue.retry(f"k{number}")
    busiest, before = 0, 0
    for _ in range(130):
        await clock.advance(1)
        busiest, before = max(busiest, len(queue) - before), len(queue)
    assert len(queue) == 10_000
    assert busiest < 700


async def test_a_waiting_worker_gets_the_key_and_a_cancelled_one_passes_it_on() -> None:
    clock = FakeClock()
    queue = queue_of(clock)
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await clock.settle()
    queue.add("a")
    first.cancel()
    await clock.settle()
    assert second.result() == "a"


async def test_close_ends_waiting_workers_and_join_waits_for_busy_ones() -> None:
    clock = FakeClock()
    queue = queue_of(clock)
    queue.add("busy")
    queue.take()
    queue.add("left behind")
    waiting = asyncio.create_task(queue.get())
    await clock.settle()
    assert waiting.result() == "left behind"
    queue.done("left behind")
    waiting = asyncio.create_task(queue.get())
    await clock.settle()
    joined = asyncio.create_task(queue.join())
    queue.close()
    queue.add("too late")
    await clock.settle()
    assert isinstance(waiting.exception(), QueueClosed)
    assert not joined.done()
    queue.done("busy")
    await clock.settle()
    assert joined.done()
    assert len(queue) == 0


async def test_a_noisy_flow_takes_turns_with_a_quiet_one() -> None:
    queue = queue_of(FakeClock(), flows=Flows(lambda key: key[0]))
    for number in range(100):
        queue.add(f"n{number}")
    queue.add("q0")
    queue.add("q1")
    assert [queue.take() for _ in range(5)] == ["n0", "q0", "n1", "q1", "n2"]


async def test_a_hanging_flow_never_holds_more_workers_than_its_limit() -> None:
    queue = queue_of(FakeClock(), flows=Flows(lambda key: key[0], limit=2))
    for number in range(10):
        queue.add(f"h{number}")
        queue.add(f"h{number}", priority=Priority.RESYNC)
    queue.add("g0")
    assert [queue.take() for _ in range(4)] == ["h0", "g0", "h1", None]
    queue.done("h0")
    assert queue.take() == "h2"
    assert queue.take() is None
    waiting = asyncio.create_task(queue.get())
    await FakeClock().settle()
    queue.done("h1")
    assert await waiting == "h3"


async def test_a_key_may_change_its_flow_while_it_waits_and_while_it_is_in_work() -> None:
    flow_of = {"a": 1, "b": 1}
    queue = queue_of(FakeClock(), flows=Flows(flow_of.__getitem__, limit=1))
    queue.add("a")
    flow_of["a"] = 2
    queue.add("a", priority=Priority.EVENT)
    assert queue.take() == "a"
    flow_of["a"] = 3
    queue.done("a")
    queue.add("b")
    flow_of["b"] = 4
    queue.discard("b")
    queue.add("b")
    assert queue.take() == "b"


async def test_a_worker_that_is_cancelled_while_a_key_arrives_leaves_it_to_the_next() -> None:
    queue = queue_of(FakeClock())
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await FakeClock().settle()
    first.cancel()
    queue.add("a")
    assert await second == "a"
    await asyncio.gather(first, return_exceptions=True)
    assert first.cancelled()


async def test_a_discarded_key_is_nowhere() -> None:
    clock = FakeClock()
    queue = queue_of(clock)
    queue.add("a")
    queue.retry("a", after=5)
    queue.discard("a")
    await clock.advance(10)
    assert queue.take() is None
    assert queue.failures("a") == 0


async def test_the_meter_sees_waiting_work_and_stuck_workers() -> None:
    clock, meter = FakeClock(), QueueMeter("widgets")
    queue = queue_of(clock, meter=meter)
    queue.add("a")
    queue.add("b")
    await clock.advance(3)
    queue.take()
    await clock.advance(4)
    assert (meter.adds, meter.depth, meter.ages()) == (2, 1, [4])
    assert (meter.waited.count, meter.waited.total) == (1, 3)
    assert queue.done("a") == 4
    assert (meter.worked.count, meter.worked.total) == (1, 4)


def test_a_backoff_that_makes_no_sense_is_refused() -> None:
    for options in ({"first": 0}, {"first": 5, "cap": 1}, {"factor": 0.5}, {"jitter": 1}):
        with pytest.raises(ValueError, match="needs 0 < first"):
            Backoff(**options)


def test_backoff_does_not_overflow() -> None:
    assert Backoff(jitter=0).delay(10**9, random=Random(0)) == 1000


async def test_a_long_wish_is_spread_by_seconds_and_not_by_hours() -> None:
    queue = Queue[str](clock=FakeClock(), random=Random(0))
    delays = [queue.retry(f"k{number}", after=86_400, firm=True) for number in range(500)]
    assert min(delays) >= 86_400
    assert 86_409 < max(delays) <= 86_410


async def test_a_key_that_another_took_over_starts_its_steps_again() -> None:
    queue = queue_of(FakeClock())
    for _ in range(FREE_STEPS):
        assert queue.repeat("a", 0.0) == 0.0
    assert queue.repeat("a", 0.0) > 0.0
    queue.discard("a")
    assert queue.repeat("a", 0.0) == 0.0
