"""Controllers that are killed after any of their writes leave nothing that the next ones do not put in order."""

from __future__ import annotations

import asyncio

import pytest
from tests.domains.inventory.test_profiles import sources
from tests.domains.inventory.world import HOME, InventoryWorld, is_joined, properties

from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.inventory.types import Property
from hortus.engine.kubeconfigs import SECRETS


async def _killed_after(here: InventoryWorld, writes: int) -> None:
    """Run controllers until they have made this many writes, or rest."""
    done = asyncio.Event()
    async with here.controllers():
        here.requests.on_write = lambda: done.set() if len(here.requests.writes) >= writes else None
        try:
            await asyncio.wait_for(done.wait(), 1.5)
        except TimeoutError:
            return


@pytest.mark.parametrize("writes", [1, 2, 3, 4])
async def test_killed_while_sources_of_one_cluster_are_joined(here: InventoryWorld, writes: int) -> None:
    await here.workload("a")
    await here.secret("alpha", "a")
    await here.secret("beta", "a")
    await _killed_after(here, writes)
    await here.shoot("rt-1")
    await here.runtime("blue", "rt-1")
    await here.gardener_cluster("rt-1", "a")
    for _ in range(3):
        await _killed_after(here, writes)
    async with here.controllers():
        profile = await here.profile(
            "rt-1", lambda found: is_joined(found) and len(sources(found)) == 4 and Property.NODES in properties(found)
        )
        assert {one.partition("@")[0] for one in sources(profile)} == {
            f"Runtime/{HOME}/blue",
            f"GardenerCluster/{HOME}/rt-1",
            f"Secret/{HOME}/alpha",
            f"Secret/{HOME}/beta",
        }
        for name in ("alpha", "beta"):
            await here.profile(name, lambda found: not found)
    await here.client.delete(RUNTIMES, "blue", HOME)
    await here.client.delete(GARDENER_CLUSTERS, "rt-1", HOME)
    await _killed_after(here, 1)
    for name in ("alpha", "beta"):
        await here.client.delete(SECRETS, name, HOME)
    async with here.controllers():
        await here.profile("rt-1", lambda found: not found)
        assert await here.names() == []
