"""kill -9 of the deciding process at random moments: an observer sees the laws kept, and everybody is reached."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from random import Random

import pytest
from tests.domains.rollouts.observer import appliances, observing
from tests.domains.rollouts.world import APPLIANCE_KIND, PATIENCE, RolloutWorld

from hortus.engine.rollouts.types import CHANGE_KINDS, Rollout, RolloutPhase

CLUSTERS = 30


@pytest.mark.parametrize("deciders", [1, 2])
async def test_killed_deciders_admit_no_more_than_one_would(here: RolloutWorld, deciders: int) -> None:
    """Two at a time have neither election nor shards, as if both fences had failed."""
    random = Random(deciders)
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    await asyncio.gather(*(here.add_cluster(f"c{number}") for number in range(CLUSTERS)))
    await here.set_policy(stages=[{"name": "all", "maxConcurrency": 6}])
    async with observing(here.client, appliances("2")) as observation, here.owner(follows=False):
        await here.start(policyName="presses", execute="Patch")
        ended = asyncio.create_task(here.until(is_over, patience=4 * PATIENCE))
        while not ended.done():
            async with AsyncExitStack() as processes:
                await asyncio.gather(*(processes.enter_async_context(here.decider()) for _ in range(deciders)))
                # At the next change at the earliest: on a slow machine too, each life gets something done.
                change = asyncio.create_task(observation.until_more(random.randint(1, 25)))
                await asyncio.wait({ended, change}, return_when=asyncio.FIRST_COMPLETED)
                change.cancel()
        rollout = await ended
    replay = observation.replay({"all": 6})
    assert not replay.problems
    assert (replay.admitted, rollout.status.stages[0].succeeded) == (CLUSTERS, CLUSTERS)
    assert set((await here.versions()).values()) == {"2"}


def is_over(rollout: Rollout) -> bool:
    return rollout.status.phase == RolloutPhase.SUCCEEDED
