"""Releases of a stack as changes that a RolloutPolicy governs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest
from tests.domains.stacks.addons.test_stages import AFTER, BEFORE, NEXT, ONE, TWO, applied, chart
from tests.domains.stacks.addons.world import HOME, AddonWorld, condition, conditions

from hortus.domains.stacks.addons.changes import STACK, STACK_CHANGE, proposal
from hortus.engine import without_managed_fields
from hortus.engine.rollouts import RolloutGate
from hortus.engine.rollouts.types import ROLLOUT_POLICIES, WANTS, PlacementDecision, Rollout, RolloutPolicy
from hortus.kube.objects import Object
from hortus.schema.cel.program import compile_expression
from hortus.testing.clusters import install as install_kinds


@pytest.fixture
async def governed(here: AddonWorld) -> AsyncIterator[AddonWorld]:
    """A world whose stack docker-plain is governed by a policy."""
    await install_kinds(here.client, RolloutPolicy, Rollout, PlacementDecision)
    here.gate = lambda manager: RolloutGate(partial(manager.cache, namespace=HOME, transform=without_managed_fields))
    changes = [{"kind": STACK, "subjects": ["docker-plain"]}]
    policy = {
        "apiVersion": ROLLOUT_POLICIES.api_version,
        "kind": ROLLOUT_POLICIES.kind,
        "metadata": {"name": "calm", "namespace": HOME},
        "spec": {"changes": changes, "stages": [{"name": "all"}]},
    }
    await here.client.create(ROLLOUT_POLICIES, policy)
    yield here


async def _publish(here: AddonWorld) -> None:
    here.shelf.staged(ONE, {"cni": chart("one")}, {AFTER: applied("cni")})
    here.shelf.staged(TWO, {"cni": chart("two")}, {BEFORE: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()


async def test_a_release_waits_for_its_rollout(governed: AddonWorld) -> None:
    here = governed
    await _publish(here)
    async with here.controllers():
        await here.installed(ONE)
        await here.move(TWO)
        addon = await here.until(lambda obj: condition(obj, "RolloutAdmitted"))
        found = condition(addon, "RolloutAdmitted")
        assert (found["status"], found["reason"], found["severity"]) == ("False", "WaitsForRollout", "Info")
        assert "policy calm governs it" in found["message"]
        assert addon["metadata"]["annotations"][f"{WANTS}{STACK}"] == TWO
        assert await here.names_inside() == {"one"}
        await here.client.delete(ROLLOUT_POLICIES, "calm", HOME)
        addon = await here.installed(TWO)
    assert "RolloutAdmitted" not in conditions(addon)
    assert f"{WANTS}{STACK}" not in addon["metadata"]["annotations"]
    assert await here.names_inside() == {"two"}


async def test_a_cluster_that_goes_back_waits_no_more(governed: AddonWorld) -> None:
    here = governed
    await _publish(here)
    async with here.controllers():
        await here.installed(ONE)
        await here.move(TWO)
        await here.until(lambda obj: condition(obj, "RolloutAdmitted"))
        await here.move(ONE)
        addon = await here.until(lambda obj: condition(obj, "Ready").get("status") == "True")
    assert "RolloutAdmitted" not in conditions(addon)
    assert f"{WANTS}{STACK}" not in addon["metadata"]["annotations"]
    assert await here.names_inside() == {"one"}


def _seen(addon: Object, expression: str) -> object:
    return compile_expression(expression, {"self": "any", "to": "string"}).run({"self": addon, "to": NEXT})


def test_a_release_is_seen_in_its_cluster_addon() -> None:
    spec = STACK_CHANGE.spec
    applied_one = {"type": "HelmChartApplied", "status": "True"}
    addon: Object = {
        "metadata": {"name": "cluster-addon-shop"},
        "spec": {"clusterRef": {"name": "shop"}, "clusterStack": ONE},
        "status": {"ready": True, "conditions": [applied_one]},
    }
    assert _seen(addon, spec.cluster) == "shop"
    assert _seen(addon, spec.subject) == "docker-plain"
    assert _seen(addon, spec.version) == ONE
    assert _seen(addon, spec.succeeded) is True
    assert _seen(addon, spec.failed) is False
    addon["spec"]["hook"] = BEFORE
    assert _seen(addon, spec.succeeded) is False
    failed = {"type": "Ready", "status": "False", "severity": "Error", "message": "no such chart"}
    addon["status"]["conditions"] = [failed]
    assert _seen(addon, spec.failed) is True
    assert _seen(addon, spec.message) == "no such chart"
    bare: Object = {"metadata": {"name": "a"}, "spec": {"clusterRef": {}}}
    for expression in (spec.cluster, spec.subject, spec.version, spec.succeeded, spec.failed, spec.message):
        _seen(bare, expression)


def test_a_change_is_one_from_a_release_to_another() -> None:
    found = proposal(ONE, NEXT)
    assert found is not None
    assert (found.kind, found.subject, found.to) == (STACK, "docker-plain", NEXT)
    assert proposal("", ONE) is None
    assert proposal(ONE, ONE) is None
    assert proposal(ONE, "quick-start") is None
