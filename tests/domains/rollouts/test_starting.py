"""Rollouts that are made of demand."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.domains.rollouts.world import APPLIANCE_KIND, APPLIANCES, FLEET, RolloutWorld

from hortus.domains.rollouts import membership
from hortus.domains.rollouts.starting import DEMAND, MADE_OF, new_rollout, wanted_version
from hortus.engine.rollouts.types import (
    CHANGE_KINDS,
    ROLLOUTS,
    Rollout,
    RolloutChange,
    RolloutPhase,
    RolloutSpec,
    RolloutStatus,
)
from hortus.schema import ObjectMeta, encode
from hortus.testing import wait_for

ONE = [{"name": "all", "maxConcurrency": 1}]


async def _ended(here: RolloutWorld, name: str) -> None:
    await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED, name=name)


async def test_a_version_that_a_rollout_of_the_history_had_is_rolled_out_again(
    here: RolloutWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a way there, a way back, and some rollouts deleted: the name by their number was taken."""
    monkeypatch.setattr(membership, "SETTLING", 0.0)
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


def test_demand_starts_again_where_the_rollout_that_superseded_another_was_deleted() -> None:
    def of(phase: str) -> Rollout:
        spec = RolloutSpec(change=RolloutChange("appliance", "press", to="2"))
        return Rollout(metadata=ObjectMeta(name="press-1"), spec=spec, status=RolloutStatus(phase=phase))

    assert wanted_version(Counter({"2": 3}), of(RolloutPhase.SUPERSEDED)) == "2"
    assert wanted_version(Counter({"2": 3}), of(RolloutPhase.ABORTED)) == ""


@pytest.mark.parametrize(
    ("made_of", "waiting", "version"),
    [
        ({}, {"3": 9}, ""),
        ({}, {"3": 9, "2": 1}, ""),
        ({MADE_OF: DEMAND}, {"3": 9, "2": 1}, ""),
        ({MADE_OF: DEMAND}, {"3": 9}, "3"),
    ],
    ids=["a person's", "a person's that others join", "one that others still ask for", "one that nobody asks for"],
)
@pytest.mark.parametrize("phase", [RolloutPhase.PENDING, RolloutPhase.PROGRESSING, RolloutPhase.HALTED, ""])
def test_demand_supersedes_only_what_demand_made_and_nobody_asks_for(
    made_of: dict[str, str], waiting: dict[str, int], version: str, phase: str
) -> None:
    spec = RolloutSpec(change=RolloutChange("appliance", "press", to="2"))
    metadata = ObjectMeta(name="press-1", labels=made_of)
    assert (
        wanted_version(Counter(waiting), Rollout(metadata=metadata, spec=spec, status=RolloutStatus(phase=phase)))
        == version
    )


async def test_demand_waits_while_a_persons_rollout_is_under_way(here: RolloutWorld) -> None:
    """One owner of an object must not end the rollout of the whole fleet by an annotation."""
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    for number in range(3):
        await here.add_cluster(f"c{number}")
    await here.set_policy(stages=ONE)
    here.outcomes = lambda cluster: ""
    async with here.controllers(), here.owner(follows=True):
        await here.start("by-hand", execute="Patch")
        await here.until(lambda one: one.status.phase == RolloutPhase.PROGRESSING, name="by-hand")
        await here.want("c2", "9")
        for name in ("c0", "c1", "c2"):
            await wait_for(here.client, APPLIANCES, name, FLEET, until=lambda one: one["spec"]["version"] == "2")
            await here.finish(name, "2")
        await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED, name="by-hand")
        after = await here.until(lambda one: one.spec.change.to == "9")
    assert after.metadata.labels[MADE_OF] == DEMAND


CANARY = [
    {"name": "canary", "clusters": {"matchLabels": {"ring": "canary"}}, "approval": "After"},
    {"name": "rest", "maxConcurrency": 4},
]


async def _rings(here: RolloutWorld) -> None:
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    await here.set_policy(stages=CANARY)
    for number in range(4):
        await here.add_cluster(f"c{number}", labels={"ring": "rest" if number else "canary"})


async def test_canaries_come_first_though_another_cluster_asks_first(
    here: RolloutWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "SETTLING", 600.0)
    await _rings(here)
    async with here.controllers(), here.owner(follows=True):
        await here.want("c3", "2")
        await here.until(lambda one: "waits for clusters that have not asked yet" in _message(one))
        for name in ("c2", "c1", "c0"):
            await here.want(name, "2")
        rollout = await here.until(lambda one: "waits for approval" in _message(one))
        assert await here.versions() == {"c0": "2", "c1": "1", "c2": "1", "c3": "1"}
        await here.order(rollout.metadata.name, approved=["canary"])
        await _ended(here, rollout.metadata.name)
    assert set((await here.versions()).values()) == {"2"}


async def test_a_stage_that_ended_without_a_cluster_begins_with_its_first_one(
    here: RolloutWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "SETTLING", 0.0)
    await _rings(here)
    here.outcomes = lambda cluster: ""
    async with here.controllers(), here.owner(follows=True):
        await here.want("c3", "2")
        await here.until(lambda one: len(one.status.stages) > 1 and one.status.stages[1].running == 1)
        await here.want("c0", "2")
        rollout = await here.until(lambda one: one.status.stages[0].running == 1)
        for name in ("c2", "c1"):
            await here.want(name, "2")
        await here.until(lambda one: one.status.stages[1].clusters == 3)
        await here.finish("c3", "2")
        await here.finish("c0", "2")
        await here.until(lambda one: "waits for approval" in _message(one))
        assert await here.admitted(rollout.metadata.name) == {"c0", "c3"}


def _message(rollout: Rollout) -> str:
    return next((one.message for one in rollout.status.conditions if one.type == "Progressing"), "")
