"""Rollouts that are made of demand."""

from __future__ import annotations

from tests.domains.rollouts.world import APPLIANCE_KIND, FLEET, RolloutWorld

from hortus.domains.rollouts.starting import new_rollout
from hortus.engine.rollouts.types import CHANGE_KINDS, ROLLOUTS, Rollout, RolloutChange, RolloutPhase
from hortus.schema import encode

ONE = [{"name": "all", "maxConcurrency": 1}]


async def _ended(here: RolloutWorld, name: str) -> None:
    await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED, name=name)


async def test_a_version_that_a_rollout_of_the_history_had_is_rolled_out_again(here: RolloutWorld) -> None:
    """As after a way there, a way back, and some rollouts deleted: the name by their number was taken."""
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    await here.add_cluster("c0")
    await here.set_policy(stages=ONE)
    first = new_rollout(None, RolloutChange("appliance", "press", to="2"), namespace=FLEET, number=2)
    async with here.controllers(), here.owner(follows=True):
        await here.client.create(ROLLOUTS, encode(first))
        await _ended(here, first.metadata.name)
        await here.start("back-9", to="1")
        await _ended(here, "back-9")
        await here.want("c0", "2")
        again = await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED and _admits(one))
    assert again.metadata.name == first.metadata.name.removesuffix("3") + "10"
    assert await here.versions() == {"c0": "2"}


def _admits(rollout: Rollout) -> bool:
    return any(stage.clusters for stage in rollout.status.stages)
