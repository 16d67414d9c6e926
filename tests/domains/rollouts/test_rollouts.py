"""Rollouts on a real API server, over objects that no domain owns."""

from __future__ import annotations

import asyncio

from tests.domains.rollouts.world import APPLIANCE_KIND, RolloutWorld
from tests.waiting import until

from hortus.engine.rollouts.types import CHANGE_KINDS, RolloutPhase

RINGS = [
    {"name": "canary", "clusters": {"matchLabels": {"ring": "canary"}}, "maxConcurrency": 1},
    {"name": "rest", "maxConcurrency": 2},
]


async def _fleet(here: RolloutWorld, count: int = 6) -> None:
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    for number in range(count):
        await here.add_cluster(f"c{number}", labels={"ring": "canary" if number == 0 else "rest"})


async def test_a_controller_that_reads_placement_decisions_alone_rolls_out(here: RolloutWorld) -> None:
    await _fleet(here)
    await here.set_policy(stages=RINGS)
    async with here.controllers(), here.owner(follows=True):
        await asyncio.gather(*(here.want(f"c{number}", "2") for number in range(6)))
        rollout = await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED)
    assert set((await here.versions()).values()) == {"2"}
    assert [(one.name, one.succeeded) for one in rollout.status.stages] == [
        ("canary", 1),
        ("rest", 5),
        ("unselected", 0),
    ]
    assert await here.admitted(rollout.metadata.name) == {f"c{number}" for number in range(6)}


async def test_a_patch_sets_the_objects_of_admitted_clusters_only(here: RolloutWorld) -> None:
    await _fleet(here)
    here.outcomes = lambda cluster: "Works" if cluster == "c0" else ""
    await here.set_policy(stages=RINGS)
    async with here.controllers(), here.owner(follows=False):
        await here.start(policyName="presses", execute="Patch")
        await here.until(lambda one: len(one.status.stages) == 3 and one.status.stages[1].running == 2)
        wanted = ["1", "1", "1", "2", "2", "2"]

        async def patched() -> bool:
            return sorted((await here.versions()).values()) == wanted

        await until(patched)  # an admission may be shown before its object is set
        assert sorted((await here.versions()).values()) == wanted


async def test_an_object_that_the_patch_would_not_change_takes_no_part(here: RolloutWorld) -> None:
    patch = "self.metadata.name == 'c1' ? [] : [{'op': 'replace', 'path': '/spec/version', 'value': to}]"
    await here.client.create(CHANGE_KINDS, {**APPLIANCE_KIND, "spec": {**APPLIANCE_KIND["spec"], "patch": patch}})
    for name in ("c0", "c1"):
        await here.add_cluster(name)
    async with here.controllers(), here.owner(follows=False):
        await here.start(execute="Patch")
        ended = await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED)
    assert (ended.status.stages[0].clusters, ended.status.stages[0].failed) == (1, 0)
    assert await here.versions() == {"c0": "2", "c1": "1"}


async def test_clusters_that_ask_after_the_end_change_in_their_stage_and_no_more_at_a_time(here: RolloutWorld) -> None:
    await _fleet(here, 2)
    await here.set_policy(stages=[RINGS[0], {**RINGS[1], "maxConcurrency": 1}])
    async with here.controllers(), here.owner(follows=True):
        await asyncio.gather(*(here.want(f"c{number}", "2") for number in range(2)))
        first = await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED)
        here.outcomes = lambda cluster: ""
        for name in ("c8", "c9"):
            await here.add_cluster(name, labels={"ring": "rest"})
            await here.want(name, "2")
        busy = await here.until(
            lambda one: (
                one.status.phase == "Progressing"
                and (one.status.stages[1].running, one.status.stages[1].clusters) == (1, 3)
            )
        )
        assert busy.status.ended_at == first.status.ended_at
        (moving,) = await here.admitted(first.metadata.name) & {"c8", "c9"}
        here.outcomes = lambda cluster: "Works"
        await here.finish(moving, "2")
        last = await here.until(
            lambda one: one.status.phase == RolloutPhase.SUCCEEDED and one.status.stages[1].succeeded == 3
        )
    assert last.metadata.name == first.metadata.name
    assert set((await here.versions()).values()) == {"2"}


async def test_a_rollout_that_ended_well_stays_so_when_a_newer_one_begins(here: RolloutWorld) -> None:
    await _fleet(here, 1)
    async with here.controllers(), here.owner(follows=False):
        for name, to in (("first-1", "2"), ("second-2", "3")):
            await here.start(name, to=to, execute="Patch")
            await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED, name=name)
        await here.start("third-3", to="3", execute="Patch")
        third = await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED, name="third-3")
        phases = [await here.until(lambda one: True, name=name) for name in ("first-1", "second-2")]
    assert [one.status.phase for one in phases] == [RolloutPhase.SUCCEEDED] * 2
    assert third.status.conditions[0].message == "no cluster had to change"


async def test_a_failure_beyond_the_budget_halts_and_a_resume_forgives_it(here: RolloutWorld) -> None:
    await _fleet(here)
    here.outcomes = lambda cluster: "Broken" if cluster == "c2" else "Works"
    await here.set_policy(stages=RINGS)
    async with here.controllers(), here.owner(follows=False):
        await here.start(policyName="presses", execute="Patch")
        halted = await here.until(lambda one: one.status.phase == RolloutPhase.HALTED)
        assert [(one.cluster, one.message) for one in halted.status.failures] == [("c2", "no ink")]
        await here.order("by-hand", resumes=1)
        ended = await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED)
    assert ended.status.halts == ended.status.forgiven_halts == 1
    assert set((await here.versions()).values()) == {"2"}
