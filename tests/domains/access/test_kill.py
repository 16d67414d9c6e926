"""A process that dies at any of its writes, before it knows of the answer, is replaced without a trace."""

from __future__ import annotations

import asyncio

from tests.domains.access.world import CONFIGMAPS, World, name_of, ready
from tests.domains.killing import Killer

from hortus.domains.access.types import CLUSTER_ACCESSES

MOST_LIVES = 30


def killer_of(here: World) -> Killer:
    """Strikes at writes."""
    return Killer("cluster-access-controller", here.requests, reads=False)


async def lives_until(here: World, reached_when: asyncio.Task[object], killer: Killer) -> int:
    """Processes, each killed at its first or second write in turn, until the task is done; returns how many."""
    for life in range(MOST_LIVES):
        killer.aim(life % 2)
        async with here.controlled():
            struck = asyncio.create_task(killer.struck.wait())
            await asyncio.wait((reached_when, struck), return_when=asyncio.FIRST_COMPLETED)
            struck.cancel()
            if reached_when.done():
                await reached_when
                return life + 1
    raise AssertionError(f"not done after {MOST_LIVES} lives")


async def test_killed_at_each_write_it_still_serves_and_leaves_nothing(here: World) -> None:
    await here.cluster()
    access = await here.ask(namespaces=["default"])
    killer = killer_of(here)
    ready = asyncio.create_task(here.until("ClusterAccess", "reader", _is_ready))
    assert await lives_until(here, ready, killer) >= 3
    secret = await here.until_secret()
    assert await here.as_client(secret, lambda client: client.list(CONFIGMAPS, "default"))
    found = await here.objects_inside()
    assert len(found) == 3, "each object once"
    assert all(line.endswith(name_of(access)) for line in found)
    await here.client.delete(CLUSTER_ACCESSES, "reader", here.namespace)
    gone = asyncio.create_task(here.until_gone("ClusterAccess", "reader"))
    assert await lives_until(here, gone, killer) >= 2
    assert await here.objects_inside() == []
    await here.until_gone("Secret", "access-reader")


def _is_ready(obj: dict[str, object]) -> bool:
    return ready(obj).get("reason") == "Issued"
