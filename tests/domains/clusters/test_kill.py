"""A process that dies after any of its writes, before it knows of the answer, is replaced without a trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.domains.clusters.world import World, is_ready
from tests.domains.killing import Killer

from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.inside.administrators import BINDINGS, LABEL
from hortus.domains.clusters.inside.oidc import PROVIDERS
from hortus.domains.credentials.types import GARDENER_CLUSTERS

MOST_LIVES = 40


async def lives_until(here: World, killer: Killer, done: Callable[[], Coroutine[Any, Any, object]]) -> int:
    """Start processes, each killed at its first or second write, until `done` returns; returns how many."""
    for life in range(MOST_LIVES):
        # An apply may come again and again.
        killer.aim(life % 2)
        async with here.controlled():
            reached = asyncio.create_task(done())
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
    killer = Killer("runtime-controller", here.requests, here.garden_requests, reads=False)
    await here.create()
    grown = await lives_until(here, killer, lambda: here.until("Runtime", "rt-1", is_ready))
    assert grown > 5
    shoots = (await here.garden.list(SHOOTS, here.garden_namespace)).items
    assert [shoot["metadata"]["name"] for shoot in shoots] == ["c-1"]
    assert len((await here.client.list(GARDENER_CLUSTERS, here.namespace)).items) == 1
    inside = here.inside.client
    assert len((await inside.list(BINDINGS, labels=LABEL)).items) == 1
    assert [found["metadata"]["name"] for found in (await inside.list(PROVIDERS)).items] == ["kyma-oidc-0"]

    await here.resize(7)
    assert await lives_until(here, killer, lambda: here.until("Runtime", "rt-1", is_ready)) > 3
    [pool] = (await here.shoot())["spec"]["provider"]["workers"]
    assert pool["maximum"] == 7

    await here.delete()
    assert await lives_until(here, killer, here.until_gone) > 3
    assert (await here.garden.list(SHOOTS, here.garden_namespace)).items == []
    assert (await here.client.list(GARDENER_CLUSTERS, here.namespace)).items == []
