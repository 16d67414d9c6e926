"""Input that no rollout can follow: each ends in a condition that names the reason and the owner of the next step."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.rollouts.world import APPLIANCE_KIND, FLEET, RolloutWorld

from hortus.engine.rollouts.types import (
    CHANGE_KINDS,
    ROLLOUT_POLICIES,
    ChangeKind,
    Rollout,
    RolloutPhase,
    RolloutPolicy,
)
from hortus.kube.errors import Invalid

DOUBLING = "cel.bind(x, [to], " + "cel.bind(x, [x, x, x, x], " * 15 + "{'a': x}" + ")" * 16
"""It makes thousands of millions of texts."""
STAGES = [{"name": "all", "maxConcurrency": 2}]


def _kind(**spec: Any) -> Any:
    return {**APPLIANCE_KIND, "spec": {**APPLIANCE_KIND["spec"], **spec}}


def _progressing(rollout: Rollout) -> tuple[str, str]:
    return next(((one.reason, one.message) for one in rollout.status.conditions if one.type == "Progressing"), ("", ""))


@pytest.mark.parametrize(
    ("change", "reason", "message"),
    [
        ({"succeeded": "self.spec.("}, "InvalidExpression", "spec.succeeded:"),
        ({"succeeded": "'yes'"}, "InvalidExpression", "spec.succeeded: must evaluate to a bool"),
        ({"cluster": "1 + 1"}, "InvalidExpression", "spec.cluster: must evaluate to a string"),
        ({"version": "self.?a" + ".optMap(x, x)" * 20}, "InvalidExpression", "spec.version: the expression doubles"),
        ({"patch": DOUBLING}, "InvalidExpression", "spec.patch: the evaluation could make too large a value"),
        ({"subject": "self.spec.missing"}, "SomeObjectsFail", "1 objects take part in no rollout: subject fails on"),
    ],
)
async def test_a_change_kind_that_cannot_be_used_says_why(
    here: RolloutWorld, change: dict[str, str], reason: str, message: str
) -> None:
    await here.add_cluster("c0")
    await here.client.create(CHANGE_KINDS, _kind(**change))
    async with here.controllers():
        found = await here.until_ready(ChangeKind, CHANGE_KINDS, "appliance", reason)
    assert message in found


async def test_a_kind_that_nobody_serves_is_named_and_followed_once_it_is(here: RolloutWorld) -> None:
    resource = {"group": "example.org", "version": "v1", "resource": "ghosts"}
    await here.client.create(CHANGE_KINDS, _kind(resource=resource))
    async with here.controllers(sync_time=0.5):
        found = await here.until_ready(ChangeKind, CHANGE_KINDS, "appliance", "NotListed")
        assert "ghosts of example.org/v1 cannot be listed" in found
        await here.serve_ghosts()
        await here.until_ready(ChangeKind, CHANGE_KINDS, "appliance", "Compiled")


async def test_a_rollout_of_no_change_kind_waits_for_it(here: RolloutWorld) -> None:
    await here.add_cluster("c0")
    async with here.controllers(), here.owner(follows=False):
        await here.start(execute="Patch")
        found = await here.until(lambda one: _progressing(one)[0] == "ChangeKindNotReady")
        assert "ChangeKind appliance is not there" in _progressing(found)[1]
        await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
        await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED)


async def test_rollouts_of_a_kind_that_nobody_serves_say_so_and_leave_others_their_workers(here: RolloutWorld) -> None:
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    ghosts = _kind(resource={"group": "example.org", "version": "v1", "resource": "ghosts"})
    await here.client.create(CHANGE_KINDS, {**ghosts, "metadata": {"name": "ghost"}})
    await here.add_cluster("c0")
    async with here.controllers(sync_time=0.2), here.owner(follows=False):
        for number in range(6):
            await here.start(f"ghost-{number}", change={"kind": "ghost", "subject": f"{number}", "to": "2"})
        for number in range(6):
            found = await here.until(lambda one: _progressing(one)[0] == "NotListed", name=f"ghost-{number}")
            assert "the objects of ChangeKind ghost are not listed" in _progressing(found)[1]
        await here.start(execute="Patch")
        await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED, name="by-hand")


async def test_a_rollout_whose_selector_cannot_be_read_names_its_field(here: RolloutWorld) -> None:
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    async with here.controllers():
        await here.start(clusters={"matchExpressions": [{"key": "ring", "operator": "In"}]})
        found = await here.until(lambda one: _progressing(one)[0] == "InvalidSelector")
        assert "spec.clusters: " in _progressing(found)[1]
        await here.order("by-hand", clusters={"matchExpressions": None})
        await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED)


async def test_a_rollout_under_no_policy_of_that_name_waits_for_it(here: RolloutWorld) -> None:
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    async with here.controllers():
        await here.start(policyName="presses", execute="Patch")
        found = await here.until(lambda one: _progressing(one)[0] == "PolicyMissing")
        assert "there is no RolloutPolicy presses" in _progressing(found)[1]
        await here.set_policy(stages=STAGES)
        await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED)


async def test_objects_that_the_server_refuses_count_as_failures_with_its_words(here: RolloutWorld) -> None:
    await here.client.create(CHANGE_KINDS, _kind(patch="{'metadata': {'labels': {'x': 'no label!'}}}"))
    await here.add_cluster("c0")
    async with here.controllers():
        await here.start(execute="Patch")
        halted = await here.until(lambda one: one.status.phase == RolloutPhase.HALTED)
        assert halted.status.failures[0].message.startswith("could not be set to 2: ")
        # Its owner does what the patch could not.
        await here.set_version("c0", "2")
        await here.finish("c0", "2")
        await here.until(lambda one: not one.status.failures)


async def test_an_admitted_object_on_which_an_expression_fails_stays_in_work(
    here: RolloutWorld,
) -> None:
    """As when the new version has no status yet: without it the rollout would go on through the whole fleet."""
    succeeded = "self.spec.version == '2' && self.status.state == 'Works'"
    await here.client.create(CHANGE_KINDS, _kind(succeeded=succeeded))
    here.outcomes = lambda cluster: ""
    for number in range(3):
        await here.add_cluster(f"c{number}")
    async with here.controllers(), here.owner(follows=False):
        await here.start(execute="Patch", policy={"stages": [{"name": "all", "progressDeadline": "3s"}]})
        halted = await here.until(lambda one: one.status.phase == RolloutPhase.HALTED)
    assert [one.message for one in halted.status.failures] == ["has not succeeded within 3 s of its admission"]
    assert sorted((await here.versions()).values()) == ["1", "1", "2"]


async def test_clusters_that_no_stage_selects_stop_a_policy_that_refuses_them(here: RolloutWorld) -> None:
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    await here.add_cluster("c0")
    canary = [{"name": "canary", "clusters": {"matchLabels": {"ring": "canary"}}}]
    await here.set_policy(stages=canary, unselected="Refuse")
    async with here.controllers(), here.owner(follows=False):
        await here.start(policyName="presses", execute="Patch")
        found = await here.until(lambda one: one.status.excluded == 1)
        assert _progressing(found) == ("Pending", "no stage selects 1 clusters (c0), which the policy refuses")
        await here.label("c0", ring="canary")
        await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"stages": []}, "spec.stages"),
        ({"stages": [{"name": "a"}, {"name": "a"}]}, "stages have different names"),
        ({"stages": [{"name": "../a"}]}, "spec.stages[0].name"),
        ({"stages": [{"name": "a", "maxConcurrency": 0}]}, "maxConcurrency"),
        ({"stages": [{"name": "a", "maxConcurrency": "0%"}]}, "maxConcurrency"),
        ({"stages": [{"name": "a", "maxFailures": "101%"}]}, "maxFailures"),
        ({"stages": [{"name": "a", "minSuccessTime": "soon"}]}, "minSuccessTime"),
        ({"stages": STAGES, "changes": []}, "spec.changes"),
    ],
)
async def test_a_policy_that_cannot_be_meant_is_refused_at_once(
    here: RolloutWorld, spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await here.set_policy(**spec)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        ({"stages": [{"name": "unselected"}]}, "InvalidTerms", "stage unselected: the name is taken"),
        (
            {"stages": [{"name": "a", "clusters": {"matchExpressions": [{"key": "x", "operator": "In"}]}}]},
            "InvalidTerms",
            "stage a: clusters:",
        ),
        (
            {"stages": STAGES, "changes": [{"kind": "ghost"}]},
            "ChangeKindNotReady",
            "there is no usable ChangeKind ghost",
        ),
    ],
)
async def test_a_policy_that_nothing_can_follow_says_why(
    here: RolloutWorld, spec: dict[str, Any], reason: str, message: str
) -> None:
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    await here.set_policy(**spec)
    async with here.controllers():
        found = await here.until_ready(RolloutPolicy, ROLLOUT_POLICIES, "presses", reason, namespace=FLEET)
    assert message in found


async def test_a_name_that_is_too_long_for_a_label_is_refused_at_once(here: RolloutWorld) -> None:
    await here.set_policy("p" * 63, stages=STAGES)
    with pytest.raises(Invalid, match="the name has more than 63 characters"):
        await here.set_policy("p" * 64, stages=STAGES)
    await here.start("r" * 63)
    with pytest.raises(Invalid, match="the name has more than 63 characters"):
        await here.start("r" * 64)


async def test_of_two_policies_the_second_says_that_it_does_not_govern(here: RolloutWorld) -> None:
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    await here.set_policy("a", stages=STAGES)
    await here.set_policy("b", stages=STAGES)
    async with here.controllers():
        found = await here.until_ready(RolloutPolicy, ROLLOUT_POLICIES, "b", "PartlyGoverns", namespace=FLEET)
        assert found == "other policies come first: appliance of * is governed by a"
        await here.set_policy("c", stages=[{"name": "all", "approval": "Before"}])
        found = await here.until_ready(RolloutPolicy, ROLLOUT_POLICIES, "a", "PartlyGoverns", namespace=FLEET)
    assert found == "other policies come first: appliance of * is governed by c"


async def test_a_rollout_gets_the_terms_of_the_policy_that_governs_its_change(here: RolloutWorld) -> None:
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    await here.set_policy("lax", stages=STAGES)
    await here.set_policy("strict", stages=[{"name": "all", "approval": "Before"}])
    async with here.controllers():
        await here.start("plain-1")
        plain = await here.until(lambda one: one.spec.policy is not None, name="plain-1")
        await here.start("lax-2", policyName="lax")
        chosen = await here.until(lambda one: bool(one.status.conditions), name="lax-2")
    assert plain.spec.policy is not None
    assert (plain.spec.policy_name, plain.spec.policy.stages[0].approval) == ("strict", "Before")
    assert chosen.status.conditions[0].reason == "PolicyNotGoverning"
    assert chosen.status.conditions[0].message == (
        "RolloutPolicy lax does not govern this change, strict does: leave spec.policyName out, or have somebody with "
        "the verb approve start the rollout with the terms in spec.policy"
    )
