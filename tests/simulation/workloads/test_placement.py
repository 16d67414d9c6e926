"""Nodes on which a DaemonSet runs: node selector, required affinity, taints against tolerations."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.simulation.workloads.placement import Node, Placement, placement, tolerations

RUNS, STAYS, ELSEWHERE = Placement(True, True), Placement(False, True), Placement(False, False)
PLAIN = Node("n1", {"pool": "a", "cores": "8"})


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, RUNS),
        ({"nodeName": "n1"}, RUNS),
        ({"nodeName": "n2"}, ELSEWHERE),
        ({"nodeSelector": {"pool": "a"}}, RUNS),
        ({"nodeSelector": {"pool": "b"}}, ELSEWHERE),
        (affinity(expression("pool", "In", "a", "b")), RUNS),
        (affinity(expression("pool", "NotIn", "a")), ELSEWHERE),
        (affinity(expression("absent", "NotIn", "a")), RUNS),
        (affinity(expression("absent", "Exists")), ELSEWHERE),
        (affinity(expression("absent", "DoesNotExist")), RUNS),
        (affinity(expression("cores", "Gt", "4")), RUNS),
        (affinity(expression("cores", "Lt", "8")), ELSEWHERE),
        (affinity(expression("pool", "In", "b"), expression("cores", "Gt", "4")), RUNS),
        (affinity({}), ELSEWHERE),
        (affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}), RUNS),
        (affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}), ELSEWHERE),
        ({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}}, RUNS),
    ],
)
def test_selector_and_affinity_decide_on_a_node(spec: dict[str, Any], expected: Placement) -> None:
    assert placement(spec, PLAIN) == expected


@pytest.mark.parametrize(
    ("taint", "spec", "expected"),
    [
        (("dedicated", "gpu", "NoSchedule"), {}, STAYS),
        (("dedicated", "gpu", "NoExecute"), {}, ELSEWHERE),
        (("dedicated", "gpu", "PreferNoSchedule"), {}, RUNS),
        (("dedicated", "gpu", "NoSchedule"), {"tolerations": [{"operator": "Exists"}]}, RUNS),
        (("dedicated", "gpu", "NoSchedule"), {"tolerations": [{"key": "dedicated", "value": "gpu"}]}, RUNS),
        (("dedicated", "gpu", "NoSchedule"), {"tolerations": [{"key": "dedicated", "value": "tpu"}]}, STAYS),
        (("dedicated", "gpu", "NoSchedule"), {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}, RUNS),
        (
            ("dedicated", "gpu", "NoExecute"),
            {"tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]},
            ELSEWHERE,
        ),
        (("node.kubernetes.io/unschedulable", "", "NoSchedule"), {}, RUNS),
        (("node.kubernetes.io/unreachable", "", "NoExecute"), {}, RUNS),
        (("node.kubernetes.io/unreachable", "", "NoSchedule"), {}, STAYS),
        (("node.kubernetes.io/network-unavailable", "", "NoSchedule"), {}, STAYS),
        (("node.kubernetes.io/network-unavailable", "", "NoSchedule"), {"hostNetwork": True}, RUNS),
    ],
)
def test_taints_decide_by_effect_and_toleration(
    taint: tuple[str, str, str], spec: dict[str, Any], expected: Placement
) -> None:
    assert placement(spec, PLAIN._replace(taints=(taint,))) == expected


def test_a_pod_tolerates_what_its_placement_took_for_tolerated() -> None:
    own = {"key": "dedicated", "operator": "Exists"}
    given = {"hostNetwork": True, "tolerations": [own]}
    found = tolerations(given)
    assert found[0] == own
    for one in found[1:]:
        tainted = PLAIN._replace(taints=((one["key"], "", one["effect"]),))
        assert placement(given, tainted) == RUNS
    assert len(found) == 8
