"""Conditions of stages: each obstacle is a condition with its reason, and none an error (issue 210)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.clocks import MovedClock
from tests.domains.stacks.addons.releases import config_map
from tests.domains.stacks.addons.test_stages import AFTER, ONE, applied, chart
from tests.domains.stacks.addons.world import CONFIG_MAPS, AddonWorld, condition, conditions

from hortus.domains.stacks.addons import workload
from hortus.domains.stacks.addons.reasons import WATCHED_AGAIN
from hortus.kube.objects import key_of

OBJECT = {"key": "gate", "apiVersion": "v1", "kind": "ConfigMap", "name": "gate", "namespace": "default"}


DOUBLING = "cel.bind(x, [gate], " + "cel.bind(x, [x, x, x, x], " * 15 + "x == x" + ")" * 16
"""It compares thousands of millions of ConfigMaps."""


def waits(expression: str, *objects: Any, **more: Any) -> dict[str, Any]:
    return {"conditions": expression, "objects": list(objects), **more}


async def _gated(here: AddonWorld, stage: list[Any]) -> None:
    """A Cluster whose one stage waits for the ConfigMap `gate`."""
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: stage})
    await here.cluster(ONE)
    await here.kubeconfig()
    await here.inside.create(CONFIG_MAPS, config_map("gate", "default", open="no"))


async def test_a_stage_waits_before_and_after_it(here: AddonWorld) -> None:
    stage = applied(
        "cni",
        waitForPreCondition=waits("gate.data.open == 'yes'", OBJECT),
        waitForPostCondition=waits("has(gate.data.closed) && gate.data.closed == 'yes'", OBJECT),
    )
    await _gated(here, stage)
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "EvaluatedCEL"))
        found = condition(addon, "EvaluatedCEL")
        assert (found["reason"], found["severity"]) == ("FailedToEvaluatePreCondition", "Info")
        assert addon["status"]["stages"] == [{"name": "cni", "action": "apply", "phase": "waitingForPreCondition"}]
        assert await here.names_inside() == set()
        await here.inside.patch(CONFIG_MAPS, "gate", {"data": {"open": "yes"}}, "default")
        await here.nudge()
        addon = await here.until(
            lambda obj: condition(obj, "EvaluatedCEL").get("reason") == "FailedToEvaluatePostCondition"
        )
        assert addon["status"]["stages"][0]["phase"] == "waitingForPostCondition"
        assert await here.names_inside() == {"cni"}
        await here.inside.patch(CONFIG_MAPS, "gate", {"data": {"closed": "yes"}}, "default")
        await here.nudge()
        addon = await here.installed(ONE)
    assert "EvaluatedCEL" not in conditions(addon)


@pytest.mark.parametrize(
    ("expression", "objects", "reason", "severity"),
    [
        ("gate.data.open == ", [OBJECT], "CompileCELExpressionFailed", "Error"),
        ("door.data.open == 'yes'", [OBJECT], "WrongInputVar", "Error"),
        (DOUBLING, [OBJECT], "CompileCELExpressionFailed", "Error"),
        ("gate.?a" + ".optMap(x, x)" * 20 + ".hasValue()", [OBJECT], "CompileCELExpressionFailed", "Error"),
        ("lists.range(gate.data.open.size() * 600000).size() > 0", [OBJECT], "EvaluateCELConditionFailed", "Info"),
        ("'yes'", [OBJECT], "CELExpressionTypeMismatch", "Error"),
        ("gate.data.open", [OBJECT], "CELExpressionTypeMismatch", "Info"),
        ("gate.data.absent == 'yes'", [OBJECT], "EvaluateCELConditionFailed", "Info"),
        ("gate.data.open == 'yes'", [{**OBJECT, "name": "other"}], "ObjectNotFound", "Info"),
        (
            "gate.data.open == 'yes'",
            [{**OBJECT, "apiVersion": "example.org/v1", "kind": "Gate"}],
            "CRDNotExisting",
            "Info",
        ),
        ("1 == 2", [], "FailedToEvaluatePreCondition", "Info"),
    ],
)
async def test_each_obstacle_has_a_reason(
    here: AddonWorld, expression: str, objects: list[Any], reason: str, severity: str
) -> None:
    stage = applied("cni", waitForPreCondition=waits(expression, *objects))
    await _gated(here, stage)
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "EvaluatedCEL"))
    found = condition(addon, "EvaluatedCEL")
    assert (found["reason"], found["severity"]) == (reason, severity)
    assert found["message"].startswith("stage cni, waitForPreCondition: ")
    assert condition(addon, "Ready")["reason"] == reason


async def test_a_timeout_is_reported_and_the_condition_still_awaited(here: AddonWorld) -> None:
    clock = MovedClock()
    here.clock = clock
    stage = applied("cni", waitForPreCondition=waits("gate.data.open == 'yes'", OBJECT, timeout="5m"))
    await _gated(here, stage)
    async with here.controllers():
        await here.until(lambda obj: condition(obj, "EvaluatedCEL").get("severity") == "Info")
    clock.offset = 301.0
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "EvaluatedCEL").get("severity") == "Error")
        found = condition(addon, "EvaluatedCEL")
        assert found["reason"] == "CELEvaluationTimeout"
        assert "does not hold after 5m0s" in found["message"]
        await here.inside.patch(CONFIG_MAPS, "gate", {"data": {"open": "yes"}}, "default")
        await here.nudge()
        await here.installed(ONE)


async def test_a_missing_kubeconfig_is_awaited_by_its_watch(here: AddonWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload, "SILENT_AGAIN", 300.0)
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "ClusterReady"))
        assert condition(addon, "ClusterReady")["severity"] == "Warning"
        result = await here.controller.reconcile(key_of(addon))
        assert result is not None and result.requeue_after == WATCHED_AGAIN
        await here.kubeconfig()
        await here.installed(ONE)
