"""Rollouts on a real API server, over objects that no domain owns."""

from __future__ import annotations

import asyncio

from tests.domains.rollouts.world import APPLIANCE_KIND, RolloutWorld

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
        assert sorted((await here.versions()).values()) == ["1", "1", "1", "2", "2", "2"]


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
