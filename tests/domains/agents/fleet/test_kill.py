"""A process that is killed at any of its writes is replaced without a trace: every write of a run is enumerated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.domains.agents.fleet.world import AGENT, DAEMON_SETS, FLEET, NAMESPACES, AgentWorld, agent_world, is_running

from hortus.domains.agents.types import AGENT_CONFIGURATIONS, AGENT_PLACEMENTS
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_gone

MOST = 60
PARTS = 3
Work = Callable[[AgentWorld], Awaitable[object]]


async def is_killed(here: AgentWorld, writes: int, work: Work) -> bool:
    """Run a process that is killed at a write; False when the work is done before that."""
    struck = asyncio.Event()
    left = writes

    def on_write() -> None:
        nonlocal left
        left -= 1
        if left < 0 and not struck.is_set():
            struck.set()
            # The server has answered, and the caller never hears of it.
            raise asyncio.CancelledError

    async with here.controllers():
        here.requests.on_write = on_write
        done = asyncio.ensure_future(work(here))
        killed = asyncio.create_task(struck.wait())
        await asyncio.wait((done, killed), return_when=asyncio.FIRST_COMPLETED)
        finished = done.done()
        for task in (done, killed):
            task.cancel()
        await asyncio.gather(done, killed, return_exceptions=True)
    return not finished


async def installed(here: AgentWorld) -> None:
    await here.placement("one", lambda obj: "version" in (obj.get("status") or {}))


async def removed(here: AgentWorld) -> None:
    await wait_gone(here.client, AGENT_CONFIGURATIONS, "fleet", FLEET)


def state(placement: Object) -> tuple[object, list[str]]:
    """The parts of a placement that a kill may not change: uids and times differ between attempts."""
    lines = [line.rsplit(",", 1)[0] for line in placement["status"]["inventory"]]
    return placement["spec"], lines


@pytest.mark.parametrize("part", range(PARTS))
async def test_a_kill_at_any_write_of_an_installation_is_made_good(server: TestServer, part: int) -> None:
    expected: object = None
    for writes in range(part, MOST, PARTS):
        async with agent_world(server) as here:
            await here.keys()
            await here.member("one")
            await here.configure()
            killed = await is_killed(here, writes, installed)
            async with here.controllers():
                await here.run_pods("one")
                found = state(await here.placement("one", is_running))
            expected = expected or found
            assert found == expected, f"after a kill at write {writes}"
            if not killed:
                assert writes > 15
                return
    raise AssertionError("the work never ended before its kill")


@pytest.mark.parametrize("part", range(PARTS))
async def test_a_kill_at_any_write_of_a_removal_leaves_nothing(server: TestServer, part: int) -> None:
    for writes in range(part, MOST, PARTS):
        async with agent_world(server) as here:
            await here.keys()
            await here.member("one")
            await here.configure()
            async with here.controllers():
                await installed(here)
            await here.client.delete(AGENT_CONFIGURATIONS, "fleet", FLEET)
            killed = await is_killed(here, writes, removed)
            async with here.controllers():
                await removed(here)
            assert (await here.client.list(AGENT_PLACEMENTS, FLEET)).items == []
            for resource, name in ((DAEMON_SETS, AGENT), (NAMESPACES, AGENT)):
                assert await here.inside_object("one", resource, name) is None
            if not killed:
                assert writes > 15
                return
    raise AssertionError("the work never ended before its kill")
