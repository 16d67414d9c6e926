"""A process that dies after any of its writes, before it knows of the answer, is replaced without a trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.domains.clusters.world import World, is_ready

from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.inside.administrators import BINDINGS, LABEL
from hortus.domains.clusters.inside.oidc import PROVIDERS
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube.objects import Object

MOST_LIVES = 40


class Killer:
    """Ends the worker in the middle of a call: the server has written, the caller does not know."""

    def __init__(self, here: World) -> None:
        self.struck = asyncio.Event()
        self._skip = True
        self._left = 0
        for requests in (here.requests, here.garden_requests):
            requests.on_answer = self._answered

    def aim(self) -> None:
        """Strike at the first write of this life and at the second of the next: an apply may come again and again."""
        self.struck.clear()
        self._skip = not self._skip
        self._left = int(self._skip)

    def _answered(self, method: str) -> None:
        task = asyncio.current_task()
        if method == "GET" or task is None or "runtime-controller worker" not in task.get_name():
            return
        if self._left:
            self._left -= 1
            return
        self.struck.set()
        # By somebody else's cancellation alone a worker would not end.
        task.cancel()
        raise asyncio.CancelledError


async def lives_until(here: World, killer: Killer, done: Callable[[Object], bool]) -> int:
    """Start processes, each killed at its first or second write, until the Runtime is as wanted; returns how many."""
    for life in range(MOST_LIVES):
        killer.aim()
        async with here.controlled():
            reached = asyncio.create_task(here.until("Runtime", "rt-1", done))
            struck = asyncio.create_task(killer.struck.wait())
            await asyncio.wait((reached, struck), return_when=asyncio.FIRST_COMPLETED)
            struck.cancel()
            if reached.done():
                await reached
                return life + 1
            reached.cancel()
        await asyncio.gather(reached, struck, return_exceptions=True)
    raise AssertionError(f"not done after {MOST_LIVES} lives; the trail so far: {here.trail}")


async def test_killed_at_every_write_a_runtime_still_grows_changes_and_goes(here: World) -> None:
    here.automatic = True
    here.choices["workers"] = 1
    killer = Killer(here)
    await here.create()
    grown = await lives_until(here, killer, is_ready)
    assert grown > 5
    shoots = (await here.garden.list(SHOOTS, here.garden_namespace)).items
    assert [shoot["metadata"]["name"] for shoot in shoots] == ["c-1"]
    assert len((await here.client.list(GARDENER_CLUSTERS, here.namespace)).items) == 1
    inside = here.inside.client
    assert len((await inside.list(BINDINGS, labels=LABEL)).items) == 1
    assert [found["metadata"]["name"] for found in (await inside.list(PROVIDERS)).items] == ["kyma-oidc-0"]

    await here.resize(7)
    assert await lives_until(here, killer, is_ready) > 3
    [pool] = (await here.shoot())["spec"]["provider"]["workers"]
    assert pool["maximum"] == 7

    await here.delete()
    assert await lives_until(here, killer, lambda found: not found) > 3
    assert (await here.garden.list(SHOOTS, here.garden_namespace)).items == []
    assert (await here.client.list(GARDENER_CLUSTERS, here.namespace)).items == []
