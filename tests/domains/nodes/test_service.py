"""Decisions about the nodes of one cluster."""

from __future__ import annotations

import msgspec
import pytest

from hortus.domains.nodes.changes import CHANGE_KIND, NODE_CHANGE, PROBLEM
from hortus.domains.nodes.service import (
    APPLIED,
    CANDIDATE,
    CHECKSUM,
    HOLD,
    IN_PLACE,
    RELEASED,
    ROLLED_BACK,
    SECRET_LABEL,
    SELECTED,
    VERSION,
    ClusterNodes,
    NodesDecision,
    PoolNode,
    PoolSecret,
)
from hortus.engine.rollouts.types import MOVED, WANTS
from hortus.kube.objects import Object, format_time, shaped
from hortus.schema.cel.program import compile_expression

NOW = 1_800_000_000.0


def node(name: str, applied: str = "a", hold: str = "", *, since: float | None = None, **more: str) -> PoolNode:
    """`since` is the time at which it lost its health."""
    annotations = {APPLIED: applied, HOLD: hold, **{key.replace("_", "-"): value for key, value in more.items()}}
    status = "True" if since is None else "False"
    obj: Object = {
        "metadata": {"name": name, "labels": {SECRET_LABEL: "pool"}, "annotations": annotations},
        "status": {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": format_time(since or 0)}]},
    }
    found = shaped(obj, PoolNode)
    assert found is not None
    return found


def in_place(one: PoolNode, reason: str, *labels: str, at: float = NOW) -> PoolNode:
    """The Node as the machine controller has it during an update in place."""
    obj: Object = msgspec.json.decode(msgspec.json.encode(one))
    obj["metadata"]["labels"] |= dict.fromkeys(labels, "true")
    condition = {"type": IN_PLACE, "status": "True", "reason": reason, "lastTransitionTime": format_time(at)}
    obj["status"]["conditions"].append(condition)
    found = shaped(obj, PoolNode)
    assert found is not None
    return found


def secret(checksum: str, name: str = "pool", **annotations: str) -> PoolSecret:
    found = shaped({"metadata": {"name": name, "annotations": {CHECKSUM: checksum, **annotations}}}, PoolSecret)
    assert found is not None
    return found


def decide(
    *nodes: PoolNode, to: str = "b", admitted: bool = True, governed: bool = True, most: int = 1
) -> NodesDecision:
    cluster = ClusterNodes(nodes, [secret(to)])
    return cluster.decide(governed=governed, admitted=admitted, most=most, patience=600.0, now=NOW)


def released(decision: NodesDecision) -> list[str]:
    return [name for name, written in decision.annotations.items() if RELEASED in written]


def test_nodes_at_rest_are_held_to_what_they_have() -> None:
    decision = decide(node("1"), node("2", hold="except=a"), to="a", admitted=False)
    assert decision == NodesDecision({"1": {HOLD: "except=a"}}, True, "", None)


def test_a_cluster_that_is_not_admitted_keeps_its_nodes_at_the_old_configuration() -> None:
    decision = decide(node("1"), node("2", hold="except=a"), admitted=False)
    assert decision == NodesDecision({"1": {HOLD: "except=a"}}, False, "", None)


@pytest.mark.parametrize(("most", "expected"), [(1, ["1"]), (2, ["1", "2"]), (9, ["1", "2", "3"])])
def test_no_more_nodes_are_released_than_may_be_unavailable(most: int, expected: list[str]) -> None:
    assert released(decide(node("1"), node("2"), node("3"), most=most)) == expected


def test_a_released_node_takes_the_place_of_the_next_until_it_is_healthy() -> None:
    out = node("1", hold="except=b")
    assert released(decide(out, node("2"))) == []
    assert released(decide(node("1", "b", "except=b", since=NOW - 5), node("2"))) == []
    assert released(decide(node("1", "b", "except=b"), node("2"))) == ["2"]


def test_a_node_without_health_is_released_first_and_one_with_it_waits() -> None:
    assert released(decide(node("1"), node("2", since=NOW - 9000))) == ["2"]
    assert released(decide(node("1"), node("2", since=NOW - 9000), node("3", since=NOW - 9000), most=2)) == ["2", "3"]


def test_a_new_node_and_one_that_somebody_else_holds_are_left_alone() -> None:
    assert decide(node("1", ""), node("2", hold="under repair")).annotations == {}


def test_without_a_policy_our_holds_are_taken_off_and_no_others() -> None:
    decision = decide(node("1", hold="except=a"), node("2", hold="under repair"), governed=False)
    assert decision.annotations == {"1": {HOLD: None, RELEASED: None}}


def test_a_node_that_has_the_wanted_configuration_is_freed_from_another_one() -> None:
    assert decide(node("1", "a", "except=b"), to="a").annotations == {"1": {HOLD: "except=a"}}


@pytest.mark.parametrize(
    ("applied", "lost", "problem"),
    [
        ("b", 599.0, ""),
        ("b", 601.0, "node 1 is not healthy with the new configuration"),
        ("a", 601.0, "node 1 has not applied the new configuration"),
    ],
)
def test_a_released_node_fails_when_its_time_is_over(applied: str, lost: float, problem: str) -> None:
    ago = NOW - lost
    out = node("1", applied, "except=b", since=ago, **{RELEASED: format_time(ago)})
    decision = decide(out, node("2"), most=9)
    assert decision.problem == problem
    assert released(decision) == ([] if problem else ["2"])
    assert decision.after == (None if problem else pytest.approx(1.0, abs=1.0))


def test_a_node_that_went_back_by_itself_fails_at_once() -> None:
    out = node("1", "a", "except=b", **{ROLLED_BACK: "b", RELEASED: format_time(NOW)})
    assert "returned to its last good configuration" in decide(out).problem
    assert decide(out, to="c").problem == ""


def test_a_node_that_is_drained_for_its_update_is_released_before_one_in_use() -> None:
    drained = in_place(node("2"), "ReadyForUpdate", CANDIDATE, SELECTED)
    selected = in_place(node("3"), "SelectedForUpdate", CANDIDATE, SELECTED)
    assert released(decide(node("1"), drained)) == ["2"]
    assert released(decide(node("1"), selected)) == ["3"]
    assert released(decide(node("1"), drained, selected, most=2)) == ["2", "3"]


def test_a_drained_node_that_is_held_counts_as_unavailable() -> None:
    drained = in_place(node("2", hold="under repair"), "ReadyForUpdate", CANDIDATE, SELECTED)
    assert released(decide(node("1"), drained)) == []


def test_a_released_candidate_is_selected_for_its_update() -> None:
    first, second = (in_place(node(name), "CandidateForUpdate", CANDIDATE) for name in "12")
    decision = decide(first, second)
    assert (released(decision), decision.selected) == (["1"], {"1"})
    out = node("1", hold="except=b", **{RELEASED: format_time(NOW)})
    late = in_place(out, "CandidateForUpdate", CANDIDATE)
    assert decide(late, second).selected == {"1"}, "the machine controller found it after its release"
    assert decide(first, second, admitted=False).selected == frozenset()
    assert decide(first, second, governed=False).selected == frozenset()
    taken = in_place(out, "SelectedForUpdate", CANDIDATE, SELECTED)
    assert decide(taken, second).selected == frozenset()


def test_the_time_of_a_node_begins_again_when_its_update_in_place_goes_on() -> None:
    out = node("1", hold="except=b", **{RELEASED: format_time(NOW - 6000)})
    assert decide(out).problem == "node 1 has not applied the new configuration"
    drained = decide(in_place(out, "ReadyForUpdate", CANDIDATE, SELECTED, at=NOW - 100))
    assert (drained.problem, drained.after) == ("", pytest.approx(500.0, abs=1.0))


def test_a_node_whose_update_in_place_failed_fails_at_once_and_no_further_one_is_selected() -> None:
    out = node("1", hold="except=b", **{RELEASED: format_time(NOW - 60)})
    other = in_place(node("2"), "CandidateForUpdate", CANDIDATE)
    decision = decide(in_place(out, "UpdateFailed", CANDIDATE, SELECTED), other, most=9)
    assert decision.problem == "node 1 failed its update in place"
    assert (released(decision), decision.selected) == ([], frozenset())
    before = in_place(out, "UpdateFailed", CANDIDATE, SELECTED, at=NOW - 3600)
    assert decide(before, other).problem == "", "it failed with the configuration before"


def test_a_version_has_the_name_that_all_pools_of_a_cluster_have() -> None:
    name = {VERSION: "2026.11"}
    assert ClusterNodes([node("1")], [secret("a", **name)]).version == "2026.11"
    assert ClusterNodes([node("1")], [secret("a"), secret("b", "unused")]).version == "a"


@pytest.mark.parametrize(
    ("annotations", "seen"),
    [
        ({}, ("", False, False, "")),
        ({WANTS: "b", MOVED: "a"}, ("a", False, False, "")),
        ({MOVED: "b"}, ("b", True, False, "")),
        ({WANTS: "b", MOVED: "a", PROBLEM: "ill"}, ("b", False, True, "ill")),
    ],
)
def test_a_change_is_seen_in_the_profile(annotations: dict[str, str], seen: tuple[object, ...]) -> None:
    known = {name if name == PROBLEM else f"{name}{NODE_CHANGE}": value for name, value in annotations.items()}
    obj: Object = {"metadata": {"name": "one", "annotations": known}}
    spec = CHANGE_KIND.spec
    texts = (spec.version, spec.succeeded, spec.failed, spec.message)
    found = [compile_expression(text, {"self": "any", "to": "string"}).run({"self": obj, "to": "b"}) for text in texts]
    assert tuple(found) == seen
