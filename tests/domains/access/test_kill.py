"""A process that dies at any of its writes, before it knows of the answer, is replaced without a trace."""

from __future__ import annotations

import asyncio

from tests.domains.access.world import CONFIGMAPS, World, name_of, ready

from hortus.domains.access.types import CLUSTER_ACCESSES

MOST_LIVES = 30


class Killer:
    """Ends the worker in the middle of a call: the server has written, the caller does not know."""

    def __init__(self, here: World) -> None:
        self.struck = asyncio.Event()
        self._left = 0
        here.requests.on_answer = self._answered

    def aim(self, writes: int) -> None:
        """Strike at the write after so many."""
        self.struck.clear()
        self._left = writes

    def _answered(self, method: str, host: str) -> None:
        task = asyncio.current_task()
        if method == "GET" or task is None or "cluster-access-controller worker" not in task.get_name():
            return
        if self._left:
            self._left -= 1
            return
        self.struck.set()
        # By somebody else's cancellation alone a worker would not end.
        task.cancel()
        raise asyncio.CancelledError


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
    killer = Killer(here)
    ready = asyncio.create_task(here.until("ClusterAccess", "reader", _is_ready))
    assert await lives_until(here, ready, killer) >= 3
    secret = await here.until_secret()
    assert await here.as_client(secret, lambda client: client.list(CONFIGMAPS, "default"))
    found = await here.objects_inside()
    assert len(found) == 3, "each object once"
    assert all(line.endswith(name_of(access)) for line in found)
    await here.client.delete(CLUSTER_ACCESSES, "reader", here.namespace)
    gone = asyncio.create_task(here.until("ClusterAccess", "reader", lambda obj: not obj))
    assert await lives_until(here, gone, killer) >= 2
    assert await here.objects_inside() == []
    await here.until_secret(lambda obj: not obj)


def _is_ready(obj: dict[str, object]) -> bool:
    return ready(obj).get("reason") == "Issued"
