"""Limits of concurrency, without the wire: turns of large bodies, and files for connections."""

from __future__ import annotations

import asyncio
import itertools
import logging
import resource
import threading
import time

import msgspec
import pytest

from hortus.apiserver import turns as turns_module
from hortus.apiserver.accepting import connections_within
from hortus.apiserver.limits import Bound, ServerLimits
from hortus.apiserver.turns import Shares, TimeAccount, Turns, metered
from hortus.kube.errors import TooManyRequests


def _spend(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


async def test_long_work_is_followed_by_an_equal_rest_for_small_requests() -> None:
    turns, ends, small = Turns(), [], 0

    async def large() -> None:
        await turns.wait()
        began = time.monotonic()
        _spend(0.05)
        ends.append((began, time.monotonic()))

    working = asyncio.gather(*[large() for _ in range(4)])
    while not working.done():
        small += 1
        await asyncio.sleep(0)
    rests = [after[0] - before[1] for before, after in itertools.pairwise(ends)]
    assert len(ends) == 4
    assert all(rest >= 0.045 for rest in rests), rests
    assert small > 100, "the loop was free in between"


async def test_short_work_is_followed_by_no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module.time, "monotonic", lambda: 1000.0)
    turns = Turns()
    for _ in range(1000):
        await turns.wait()
    assert turns._free_at == 0.0


def test_connections_are_no_more_than_files_may_be_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for files, expected in ((1024, 960), (100, 50), (20_000, 10_000), (resource.RLIM_INFINITY, 10_000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            assert connections_within(10_000) == expected
            assert bool(caplog.records) == (expected < 10_000)


def test_a_crowded_server_keeps_connections_from_every_user_and_cluster() -> None:
    limits = ServerLimits().within(960)
    assert (limits.watches, limits.reads, limits.writes) == (720, 240, 120)
    assert (limits.watches + limits.reads + limits.writes) // 2 < 960
    assert ServerLimits().within(10_000) == msgspec.structs.replace(ServerLimits(), watches=7_500)
    assert min(ServerLimits().within(1).watches, ServerLimits().within(1).reads) >= 2


def taken(bound: Bound, cluster: str, user: str) -> int:
    """The share that one user gets."""
    for count in range(1000):
        try:
            bound.take((cluster, user))
        except TooManyRequests:
            return count
    raise AssertionError("no bound")


def test_the_users_of_one_cluster_leave_some_for_others_however_many_they_are() -> None:
    bound = Bound(100)
    assert [taken(bound, "mine", f"user-{number}") for number in range(4)] == [50, 25, 0, 0]
    assert taken(bound, "victim", "user") == 25
    for _ in range(50):
        bound.give(("mine", "user-0"))
    assert taken(bound, "mine", "user-9") == 50
    root = Bound(100)
    assert [taken(root, "root", f"user-{number}") for number in range(3)] == [50, 50, 0]


async def test_holders_take_turns_however_often_each_asked() -> None:
    turns, order = Turns(), []

    async def work(holder: str) -> None:
        await turns.wait(holder)
        order.append(holder)

    await asyncio.gather(*[work("many") for _ in range(5)], work("one"), work("two"))
    assert order == ["many", "many", "one", "two", "many", "many", "many"]


@pytest.mark.parametrize(("seconds", "shared"), [(0.0001, 10), (0.0015, 2), (0.02, 1)])
async def test_short_work_shares_a_turn_until_it_is_over(
    seconds: float, shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(turns_module.time, "monotonic", lambda: now[0])
    turns, rounds, number = Turns(), [], 0

    async def work() -> None:
        await turns.begin("holder")
        rounds.append(number)
        now[0] += seconds

    working = asyncio.gather(*[work() for _ in range(10)])
    while not working.done():
        number += 1
        now[0] += 0.001
        await asyncio.sleep(0)
    counts = [rounds.count(each) for each in sorted(set(rounds))]
    assert counts == [shared] + [1] * (10 - shared)


async def test_waiting_work_is_not_overtaken_by_short_work() -> None:
    turns, order = Turns(), []

    async def work(name: str) -> None:
        await turns.wait(name)
        order.append(name)

    async def short() -> None:
        await turns.begin("short")
        order.append("short")

    await asyncio.gather(work("one"), work("two"), short())
    assert order == ["one", "two", "short"]


@pytest.mark.parametrize("cancelled", [0, 1, 2])
async def test_cancelled_waiters_block_no_one(cancelled: int) -> None:
    turns, order = Turns(), []

    async def work(number: int) -> None:
        await turns.wait(number)
        order.append(number)

    tasks = [asyncio.create_task(work(number)) for number in range(4)]
    await asyncio.sleep(0)
    tasks[cancelled].cancel()
    await asyncio.wait(tasks, timeout=60)
    assert order == [number for number in range(4) if number != cancelled]


async def test_work_in_threads_is_done_one_at_a_time_also_when_nobody_waits_for_it_any_more() -> None:
    turns, going, seen = Turns(), threading.Event(), []

    def slow() -> None:
        going.wait(60)
        seen.append("slow")

    left = asyncio.create_task(turns.aside("a", slow))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    left.cancel()
    following = asyncio.create_task(turns.aside("b", lambda: seen.append("next")))
    await asyncio.wait([left])
    going.set()
    await asyncio.wait_for(following, 60)
    assert seen == ["slow", "next"]


async def test_only_users_beyond_their_share_wait_and_only_under_contention(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(turns_module.time, "perf_counter", lambda: now[0])
    turns, waited = Turns(), []
    monkeypatch.setattr(Turns, "begin", lambda self, holder: _noted(waited, holder))
    shares = Shares(turns)
    (await shares.enter("heavy")).add(0.5)
    await shares.enter("heavy")
    assert waited == [], "it is alone"
    await shares.enter("light")
    await shares.enter("heavy")
    await shares.enter("light")
    assert waited == ["heavy"]
    now[0] += 2.0
    await shares.enter("light")
    await shares.enter("heavy")
    assert waited == ["heavy"], "its share has caught up"


async def _noted(waited: list[object], holder: object) -> None:
    waited.append(holder)


async def test_the_time_of_waits_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(turns_module.time, "perf_counter", lambda: now[0])
    account, begun, event = TimeAccount(), asyncio.Event(), asyncio.Event()

    async def request() -> str:
        now[0] += 0.05
        begun.set()
        await event.wait()
        now[0] += 0.05
        return "done"

    async def charged() -> str:
        return await metered(request(), account)

    running = asyncio.create_task(charged())
    await begun.wait()
    now[0] += 0.1
    event.set()
    assert await running == "done"
    first = 0.05 - turns_module._ENTRY
    assert account._used == pytest.approx(first - 0.15 * turns_module._SHARE + 0.05)


async def test_a_metered_request_can_be_cancelled() -> None:
    ended = []

    async def request() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(True)
            raise

    async def run() -> None:
        await metered(request(), TimeAccount())

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert ended == [True]
