"""The decisions of people, and of newer changes, about a rollout under way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.domains.rollouts.world import APPLIANCE_KIND, FLEET, RolloutWorld

from hortus.domains.rollouts.directing import append_approval
from hortus.engine.owners import own
from hortus.engine.rollouts.types import (
    CHANGE_KINDS,
    PLACEMENT_DECISIONS,
    ROLLOUT_POLICIES,
    ROLLOUTS,
    Label,
    Rollout,
    RolloutPhase,
)
from hortus.kube.errors import Invalid
from hortus.schema import decode

ONE = [{"name": "all", "maxConcurrency": 1}]


async def _fleet(here: RolloutWorld, count: int = 4) -> None:
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    for number in range(count):
        await here.add_cluster(f"c{number}")


def _running(rollout: Rollout) -> bool:
    return bool(rollout.status.stages) and rollout.status.stages[0].running > 0


async def test_an_abort_withdraws_the_clusters_that_have_not_begun(here: RolloutWorld) -> None:
    await _fleet(here)
    await here.set_policy(stages=[{"name": "all", "maxConcurrency": 2}])
    async with here.controllers():
        for number in range(4):
            await here.want(f"c{number}", "2")
        name = (await here.until(lambda one: _running(one) and one.status.stages[0].running == 2)).metadata.name
        begun, done = sorted(await here.admitted(name))
        for cluster in (begun, done):
            await here.set_version(cluster, "2")
        await here.finish(done, "2")
        # Changes of one kind are seen in their order: that the one has begun is seen before that the other is done.
        await here.until(lambda one: (one.status.stages[0].succeeded, one.status.stages[0].running) == (1, 2))
        assert len(await here.admitted(name)) == 3
        await here.order(name, state="Abort")
        await here.until(lambda one: one.status.phase == RolloutPhase.ABORTED)
        assert await here.admitted(name) == {begun, done}
    with pytest.raises(Invalid, match="an aborted rollout stays so"):
        await here.order(name, state="Run")


@asynccontextmanager
async def _one_in_flight(here: RolloutWorld) -> AsyncIterator[None]:
    """A rollout `first` to version 2, with one cluster that is changed and shows no outcome."""
    await _fleet(here)
    here.outcomes = lambda cluster: ""
    await here.set_policy(stages=ONE)
    async with here.controllers(), here.owner(follows=False):
        await here.start("first", policyName="presses", execute="Patch")
        await here.until(_running, name="first")
        yield


async def _expect_wait_for_the_first(here: RolloutWorld, name: str) -> None:
    """The rollout `name` admits no cluster while that of `first` is in flight, and succeeds afterwards."""
    found = await here.until(_running, name=name)
    assert found.status.stages[0].running == 1 and await here.admitted(name) == set()
    (moving,) = await here.admitted("first")
    await here.finish(moving, "2")
    here.outcomes = lambda cluster: "Works"
    await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED, name=name)


async def test_a_newer_change_takes_the_place_and_waits_for_clusters_in_flight(here: RolloutWorld) -> None:
    async with _one_in_flight(here):
        await here.start("second", to="3", policyName="presses", execute="Patch")
        await here.until(lambda one: one.status.phase == RolloutPhase.SUPERSEDED, name="first")
        await _expect_wait_for_the_first(here, "second")
    assert set((await here.versions()).values()) == {"3"}


async def test_clusters_in_flight_count_through_several_newer_changes(here: RolloutWorld) -> None:
    async with _one_in_flight(here):
        await here.start("second", to="3", policyName="presses", execute="Patch")
        await here.until(_running, name="second")
        await here.start("third", to="4", policyName="presses", execute="Patch")
        await _expect_wait_for_the_first(here, "third")


async def test_a_rollout_whose_terms_cannot_be_followed_does_not_stop_the_next(here: RolloutWorld) -> None:
    await _fleet(here)
    async with here.controllers(), here.owner(follows=False):
        await here.start("first", policy={"stages": [{"name": "unselected"}]})
        await here.until(lambda one: "the name is taken" in _reason(one), name="first")
        await here.start("second", execute="Patch")
        await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED, name="second")
        first = await here.until(lambda one: True, name="first")
        assert first.status.phase != RolloutPhase.SUCCEEDED


async def test_a_rollout_that_waited_for_approval_reports_when_it_began(here: RolloutWorld) -> None:
    """The status that follows the admission is written up to a second later, by another decision."""
    await _fleet(here)
    async with here.controllers(), here.owner(follows=False):
        await here.start(
            execute="Patch", policy={"stages": [{"name": "all", "maxConcurrency": 4, "approval": "Before"}]}
        )
        await here.until(lambda one: "waits for approval" in _reason(one))
        await here.order("by-hand", approved=["all"])
        ended = await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED)
    slices = (await here.client.list(PLACEMENT_DECISIONS, FLEET)).items
    reasons = {one["reason"] for each in slices for one in each["decisions"]}
    assert reasons == {f"admitted {ended.status.started_at} in stage all"}


async def test_approvals_at_the_same_time_all_count(here: RolloutWorld) -> None:
    stages = [{"name": name, "approval": "Before"} for name in ("one", "two", "three")]
    await here.start(policy={"stages": stages})
    seen = decode(Rollout, await here.client.get(ROLLOUTS, "by-hand", FLEET))
    await asyncio.gather(
        *(append_approval(here.client, seen, stage, "hortus-cli") for stage in ("one", "two", "three", "one"))
    )
    approved = (await here.client.get(ROLLOUTS, "by-hand", FLEET))["spec"]["approved"]
    assert sorted(approved) == ["one", "three", "two"]


async def test_a_pause_of_rollout_or_policy_admits_nobody(here: RolloutWorld) -> None:
    await _fleet(here)
    await here.set_policy(stages=ONE, paused=True)
    async with here.controllers(), here.owner(follows=False):
        await here.start(policyName="presses", execute="Patch", state="Pause")
        await here.until(lambda one: one.status.phase == RolloutPhase.PAUSED and "rollout resume" in _reason(one))
        await here.order("by-hand", state="Run")
        await here.until(lambda one: "policy presses is paused" in _reason(one))
        assert await here.admitted("by-hand") == set()
        await here.set_policy(stages=ONE, paused=False)
        await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED)


async def test_a_policy_that_is_edited_or_deleted_does_not_change_a_rollout_under_way(here: RolloutWorld) -> None:
    await _fleet(here)
    here.outcomes = lambda cluster: ""
    await here.set_policy(stages=ONE)
    async with here.controllers(), here.owner(follows=False):
        await here.start(policyName="presses", execute="Patch")
        await here.until(_running)
        await here.set_policy(stages=[{"name": "all", "maxConcurrency": 4}])
        await here.client.delete(ROLLOUT_POLICIES, "presses", FLEET)
        (moving,) = await here.admitted("by-hand")
        await here.finish(moving, "2")
        await here.until(lambda one: _running(one) and one.status.stages[0].succeeded == 1)
        assert len(await here.admitted("by-hand")) == 2


async def test_a_halt_starts_the_way_back_where_the_policy_asks_for_it(here: RolloutWorld) -> None:
    await _fleet(here, 6)
    here.outcomes = lambda cluster: "Broken" if cluster == "c3" else "Works"
    await here.set_policy(stages=[{"name": "all", "maxConcurrency": 2}], onFailure="HaltAndRevert")
    async with here.controllers(), here.owner(follows=False):
        change = {"kind": "appliance", "subject": "press", "from": "1", "to": "2"}
        await here.start(policyName="presses", execute="Patch", change=change)
        await here.until(lambda one: one.status.phase == RolloutPhase.SUPERSEDED, name="by-hand")
        admitted = await here.admitted("by-hand")
        here.outcomes = lambda cluster: "Works"
        await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED, name="by-hand-revert")
        assert await here.admitted("by-hand-revert") == admitted
    assert set((await here.versions()).values()) == {"1"}


async def test_a_rollout_begins_without_the_clusters_of_a_deleted_one_of_its_name(here: RolloutWorld) -> None:
    """Slices stay until garbage collection; here their owner lives on, so that they stay for the whole test."""
    await _fleet(here)
    await here.set_policy(stages=ONE)
    await here.start("other", change={"kind": "appliance", "subject": "none", "to": "2"})
    owner = await here.client.get(ROLLOUTS, "other", FLEET)
    entry = {"clusterProfileRef": {"name": "c0"}, "reason": "admitted 2020-01-01T00:00:00Z in stage all"}
    left = {
        "apiVersion": PLACEMENT_DECISIONS.api_version,
        "kind": "PlacementDecision",
        "metadata": {"name": "by-hand-9", "namespace": FLEET, "labels": {Label.DECISION_KEY: "by-hand"}},
        "decisions": [entry],
    }
    own(left, owner)
    await here.client.create(PLACEMENT_DECISIONS, left)
    async with here.controllers(), here.owner(follows=False):
        await here.start(policyName="presses", execute="Patch")
        ended = await here.until(lambda one: bool(one.status.ended_at), name="by-hand")
    assert (ended.status.phase, ended.status.halts, ended.status.stages[0].succeeded) == (RolloutPhase.SUCCEEDED, 0, 4)
    assert (await here.client.get(PLACEMENT_DECISIONS, "by-hand-9", FLEET))["decisions"] == [entry]


async def test_a_slice_without_an_owner_in_the_way_is_named_until_it_is_deleted(here: RolloutWorld) -> None:
    """`kubectl delete --cascade=orphan` leaves one."""
    await _fleet(here)
    left = {
        "apiVersion": PLACEMENT_DECISIONS.api_version,
        "kind": "PlacementDecision",
        "metadata": {"name": "by-hand-0", "namespace": FLEET, "labels": {Label.DECISION_KEY: "by-hand"}},
        "decisions": [],
    }
    await here.client.create(PLACEMENT_DECISIONS, left)
    async with here.controllers(), here.owner(follows=False):
        await here.start(execute="Patch")
        blocked = await here.until(lambda one: "PlacementDecision by-hand-0 is left" in _reason(one))
        assert blocked.status.phase != RolloutPhase.SUCCEEDED
        await here.client.delete(PLACEMENT_DECISIONS, "by-hand-0", FLEET)
        await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED)


async def test_a_rollout_is_deleted_with_its_slices(here: RolloutWorld) -> None:
    await _fleet(here)
    await here.set_policy(stages=ONE)
    async with here.controllers(), here.owner(follows=False):
        await here.start(policyName="presses", execute="Patch")
        await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED)
        assert await here.admitted("by-hand")
        await here.client.delete(ROLLOUTS, "by-hand", FLEET)
        await here.until_no_slices()
        assert not await here.admitted("by-hand")


def _reason(rollout: Rollout) -> str:
    return next((one.message for one in rollout.status.conditions if one.type == "Progressing"), "")
