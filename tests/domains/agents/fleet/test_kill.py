"""A process that is killed at any of its writes is replaced without a trace: every write is enumerated.

Each attempt installs the agent in a cluster, then removes it; in both one process is killed at one write, and a second
one ends the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from tests.domains.agents.fleet.world import AGENT, DAEMON_SETS, FLEET, NAMESPACES, AgentWorld, is_running
from tests.domains.attempts import one_of
from tests.domains.killing import Killer, killed_at

from hortus.domains.agents.fleet.composition import PLACEMENTS
from hortus.domains.agents.types import AGENT_CONFIGURATIONS, AGENT_PLACEMENTS
from hortus.kube.objects import Object
from hortus.testing.waiting import wait_gone

MOST = 63
PARTS = 9


async def is_killed(here: AgentWorld, writes: int, work: Awaitable[object]) -> bool:
    """Run a process that is killed at a write; False when the work is done before that."""
    killer = Killer(PLACEMENTS, here.requests, reads=False, remote=True)
    done = asyncio.ensure_future(work)
    try:
        return await killed_at(killer, writes, here.controllers(), done)
    finally:
        killer.rest()
        done.cancel()
        await asyncio.wait((done,))


async def installed(here: AgentWorld) -> Object:
    return await here.placement("one", lambda obj: "version" in (obj.get("status") or {}))


async def removed(here: AgentWorld) -> None:
    await wait_gone(here.client, AGENT_CONFIGURATIONS, "fleet", FLEET)


def parts_of(placement: Object) -> tuple[object, list[str]]:
    """The parts of a placement that are the same in each attempt: uids and times are not."""
    lines = [line.rsplit(",", 1)[0] for line in placement["status"]["inventory"]]
    return placement["spec"], lines


@one_of(PARTS)
async def test_a_kill_at_any_write_shows_neither_in_the_agent_nor_after_its_removal(
    here: AgentWorld, part: int
) -> None:
    await here.keys()
    await here.member("one")
    expected: object = None
    for writes in range(part, MOST, PARTS):
        await here.configure()
        killed = await is_killed(here, writes, installed(here))
        async with here.controllers():
            await here.run_pods("one")
            found = parts_of(await here.placement("one", is_running))
        expected = expected or found
        assert found == expected, f"after a kill at write {writes}"
        await here.client.delete(AGENT_CONFIGURATIONS, "fleet", FLEET)
        killed_again = await is_killed(here, writes, removed(here))
        async with here.controllers():
            await removed(here)
        assert (await here.client.list(AGENT_PLACEMENTS, FLEET)).items == []
        for resource, name in ((DAEMON_SETS, AGENT), (NAMESPACES, AGENT)):
            assert await here.inside_object("one", resource, name) is None, f"after a kill at write {writes}"
        if not killed and not killed_again:
            assert writes > 15, "too few writes: the killer missed the controller"
            return
    raise AssertionError("the work never ended before its kill")
