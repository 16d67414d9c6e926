"""Objects that never rest are seen: circles, what is renewed again and again, and heartbeats, which do not count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.simulation.fork.test_fork import CONFIG_MAPS, admin, config_map, forked

from hortus.kube import Client
from hortus.simulation.fork import Fork, LiveClusters
from hortus.simulation.plan.activity import Activity, Burst, busy
from hortus.testing.apiserver import TestServer

Write = Callable[[Client, Fork], Awaitable[None]]


async def _followed(server: TestServer, write: Write) -> tuple[Activity, float]:
    async def step(fork: Fork, live: LiveClusters) -> tuple[Activity, float]:
        activity = Activity(fork)
        async with fork.client() as client:
            await client.create(CONFIG_MAPS, config_map("restless", turn="0"))
            await write(client, fork)
        return activity, fork.clock.monotonic()

    return await asyncio.to_thread(forked, admin(server), step)


async def _set(client: Client, manager: str, **data: str) -> None:
    await client.patch(CONFIG_MAPS, "restless", {"data": data}, "default", field_manager=manager)


async def test_two_writers_that_undo_each_other_are_a_loop_with_both_named(server: TestServer) -> None:
    async def fight(client: Client, fork: Fork) -> None:
        for _ in range(6):
            await _set(client, "one", turn="1")
            await fork.clock.sleep(10.0)
            await _set(client, "two", turn="2")
            await fork.clock.sleep(10.0)

    activity, now = await _followed(server, fight)
    (loop,) = activity.loops
    assert (loop.cluster, loop.kind, loop.name) == ("root", "ConfigMap", "default/restless")
    assert {"one", "two"} <= {*loop.managers}
    assert [found.path for found in loop.differences] == ["data.turn"]
    assert now - activity.last > 50.0  # what goes in circles does not keep the plan from its end


async def test_what_is_renewed_after_a_while_again_and_again_recurs(server: TestServer) -> None:
    async def renew(client: Client, fork: Fork) -> None:
        for turn in range(1, 6):
            await fork.clock.sleep(2000.0)
            await _set(client, "rotation", turn=str(turn))

    activity, _ = await _followed(server, renew)
    assert activity.loops == []
    (found,) = activity.recurring
    assert (found.kind, found.name, found.period) == ("ConfigMap", "default/restless", 2000.0)


async def test_progress_in_small_steps_is_neither(server: TestServer) -> None:
    async def progress(client: Client, fork: Fork) -> None:
        for turn in range(1, 20):
            await fork.clock.sleep(60.0)
            await _set(client, "operation", turn=str(turn))

    activity, now = await _followed(server, progress)
    assert (activity.loops, activity.recurring) == ([], [])
    assert activity.last == now


async def test_a_heartbeat_is_no_activity(server: TestServer) -> None:
    async def beat(client: Client, fork: Fork) -> None:
        await _set(client, "heart", at="2026-01-01T00:00:00Z")
        for second in range(1, 9):
            await fork.clock.sleep(60.0)
            await _set(client, "heart", at=f"2026-01-01T00:00:0{second}Z")

    activity, now = await _followed(server, beat)
    assert now - activity.last == 480.0


async def test_a_loop_that_ended_is_none(server: TestServer) -> None:
    async def fight_and_rest(client: Client, fork: Fork) -> None:
        for _ in range(6):
            await _set(client, "one", turn="1")
            await _set(client, "two", turn="2")
        await fork.clock.sleep(4000.0)

    activity, _ = await _followed(server, fight_and_rest)
    assert activity.loops == []


async def test_writes_that_follow_each_other_are_one_burst(server: TestServer) -> None:
    async def twice(client: Client, fork: Fork) -> None:
        await _set(client, "one", turn="1")
        await fork.clock.sleep(60.0)
        await _set(client, "one", turn="2")
        await fork.clock.sleep(36_000.0)
        await _set(client, "one", turn="3")

    activity, _ = await _followed(server, twice)
    (bursts,) = activity.bursts.values()
    assert [round(one.end - one.begin) for one in bursts] == [60, 0]


def test_bursts_of_several_objects_are_counted_once() -> None:
    found = busy([Burst(5000.0, 5060.0), Burst(0.0, 100.0), Burst(50.0, 300.0), Burst(800.0, 900.0)])
    assert found == [Burst(0.0, 900.0), Burst(5000.0, 5060.0)]
