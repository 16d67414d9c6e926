"""The gate's answers, from caches of policies, Rollouts and PlacementDecisions."""

from __future__ import annotations

from typing import Any

from hortus.engine import Cache
from hortus.engine.rollouts import Proposal, RolloutGate
from hortus.engine.rollouts.types import PLACEMENT_DECISIONS, ROLLOUTS, Label
from hortus.kube.objects import Object, Resource

PROPOSAL = Proposal("press", "ink", "2")


def _gate(rollouts: list[Object], slices: list[Object], policies: tuple[Object, ...] = ()) -> RolloutGate:
    caches: dict[Resource, Cache] = {}

    def cache(resource: Resource) -> Cache:
        return caches.setdefault(resource, Cache(resource.plural))

    gate = RolloutGate(cache)
    for resource, made in caches.items():
        made.replace({ROLLOUTS: rollouts, PLACEMENT_DECISIONS: slices}.get(resource, policies), 1)
    return gate


def _rollout(name: str, uid: str, phase: str = "Progressing", *, to: str = "2") -> Object:
    metadata: Object = {"name": name, "namespace": "fleet", "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {
        "metadata": metadata,
        "spec": {"change": {"kind": "press", "subject": "ink", "to": to}},
        "status": {"phase": phase},
    }


def _slice(name: str, owner: str, *clusters: str) -> Object:
    references: list[dict[str, Any]] = [{"uid": owner, "name": name, "controller": True}]
    return {
        "metadata": {"name": f"{name}-0", "labels": {Label.DECISION_KEY: name}, "ownerReferences": references},
        "decisions": [{"clusterProfileRef": {"name": cluster}} for cluster in clusters],
    }


def test_a_cluster_changes_once_a_slice_of_the_rollout_has_it() -> None:
    gate = _gate([_rollout("r", "new")], [_slice("r", "new", "one")])
    assert gate.ask(PROPOSAL, "one").allowed
    assert not gate.ask(PROPOSAL, "two").allowed


def test_a_slice_of_a_deleted_rollout_admits_nothing_for_its_namesake() -> None:
    assert not _gate([_rollout("r", "new")], [_slice("r", "old", "one")]).ask(PROPOSAL, "one").allowed


def test_of_rollouts_made_within_one_second_the_one_with_the_greater_number_counts() -> None:
    gate = _gate(
        [_rollout("to-9-aaa-2", "a", to="9"), _rollout("to-2-bbb-10", "b")], [_slice("to-2-bbb-10", "b", "one")]
    )
    assert gate.ask(PROPOSAL, "one").rollout == "to-2-bbb-10"
    assert gate.ask(PROPOSAL, "one").allowed


def test_a_way_back_is_newer_than_its_rollout_within_the_same_second() -> None:
    back = Proposal("press", "ink", "1")
    gate = _gate([_rollout("r-3", "a"), _rollout("r-3-revert", "b", to="1")], [_slice("r-3-revert", "b", "one")])
    assert gate.ask(back, "one").allowed
    assert not gate.ask(PROPOSAL, "one").allowed


def test_after_the_end_a_policy_still_holds_back_whom_the_rollout_did_not_admit() -> None:
    policy: Object = {
        "metadata": {"name": "p", "namespace": "fleet"},
        "spec": {"changes": [{"kind": "press"}], "stages": [{"name": "all"}]},
    }
    rollouts, slices = [_rollout("r-1", "a", "Succeeded")], [_slice("r-1", "a", "one")]
    governed = _gate(rollouts, slices, (policy,))
    assert governed.ask(PROPOSAL, "one").allowed
    assert governed.ask(PROPOSAL, "two").reason == "waits in rollout r-1 (Succeeded)"
    assert _gate(rollouts, slices).ask(PROPOSAL, "two").allowed
