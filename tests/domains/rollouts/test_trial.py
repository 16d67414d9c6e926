"""Trials of policies on virtual time: repeatable, within the laws, and true to the faults that were asked for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.domains.rollouts.terms import Terms, terms_of
from hortus.domains.rollouts.trial import TrialResult, run_trial
from hortus.domains.rollouts.trialfleet import LabelShares, TrialConditions, trial_fleet
from hortus.engine.rollouts.types import PolicyTerms, RolloutPhase, Stage

HOUR = 3600.0
CANARY = {"matchLabels": {"ring": "canary"}}
RINGS = (LabelShares("ring", {"canary": 0.1}),)


def terms(**changes: object) -> Terms:
    canary = Stage(name="canary", clusters=CANARY, min_success_time="2h")
    rest = Stage(name="rest", max_concurrency="10%", max_failures="5%")
    return terms_of(PolicyTerms(**{"stages": (canary, rest), **changes}))  # type: ignore[arg-type]


def tried(found: Terms, conditions: TrialConditions) -> TrialResult:
    return run_trial(found, trial_fleet(found, conditions), conditions)


@pytest.mark.parametrize("late", [0.0, 0.2])
def test_the_seed_decides_everything(late: float) -> None:
    conditions = TrialConditions(labels=RINGS, fail=0.02, hang=0.02, flap=0.1, late=late, resumes=True)
    assert tried(terms(), conditions) == tried(terms(), conditions)
    assert tried(terms(), conditions) != tried(terms(), conditions._replace(seed=2))


_SHARES = st.sampled_from([0.0, 0.02, 0.2])


@settings(max_examples=60, deadline=None)
@given(
    conditions=st.builds(
        TrialConditions,
        clusters=st.integers(1, 60),
        labels=st.sampled_from([(), RINGS]),
        fail=_SHARES,
        hang=_SHARES,
        flap=_SHARES,
        late=_SHARES,
        change_time=st.sampled_from([1.0, 900.0]),
        approval_time=st.sampled_from([0.0, HOUR]),
        window=st.sampled_from(["", "220000+0100-230000+0100 Sat,Sun"]),
        resumes=st.just(value=True),
        seed=st.integers(0, 99),
    ),
    limit=st.sampled_from([1, 7, "30%"]),
    approval=st.sampled_from(["None", "Before", "After"]),
    windows=st.sampled_from(["Respect", "Ignore"]),
)
def test_no_moment_has_more_in_work_than_the_policy_allows_and_all_stages_end_in_order(
    conditions: TrialConditions, limit: int | str, approval: str, windows: str
) -> None:
    stages = (
        Stage(name="canary", clusters=CANARY, min_success_time="2h", approval=approval),  # type: ignore[arg-type]
        Stage(name="rest", max_concurrency=limit, windows=windows),  # type: ignore[arg-type]
    )
    found, moments = terms(stages=stages), []
    fleet = trial_fleet(found, conditions)
    result = run_trial(found, fleet, conditions, record=lambda at, values: moments.append((at, dict(values))))
    assert result.phase == RolloutPhase.SUCCEEDED
    canary, rest, _ = result.stages
    for stage in (canary, rest):
        assert max(values[f"{stage.name} working"] for _, values in moments) == stage.most_in_work <= stage.limit
        # A rollout does not wait for a cluster that joins a stage which has ended.
        assert result.joined or stage.succeeded + stage.failed == stage.clusters
    if canary.clusters and rest.began is not None and not result.joined:
        assert canary.settled is not None and canary.ended is not None
        approved = 0.0 if approval == "None" or approval == "Before" else conditions.approval_time
        assert canary.ended >= canary.settled + 2 * HOUR + approved
        assert rest.began >= canary.ended
    assert [at for at, _ in moments] == sorted(at for at, _ in moments)


@pytest.mark.parametrize(
    ("faults", "failed", "healed"),
    [({"fail": 0.03}, 3, 0), ({"hang": 0.03}, 3, 0), ({"flap": 0.03}, 0, 3), ({}, 0, 0)],
)
def test_each_fault_strikes_its_share_of_the_clusters(faults: Mapping[str, float], failed: int, healed: int) -> None:
    whole = terms(stages=(Stage(name="all", max_failures="100%", min_success_time="1h"),))
    stage = tried(whole, TrialConditions(**faults)).stages[0]  # type: ignore[arg-type]
    assert (stage.failed, stage.healed, stage.succeeded) == (failed, healed, 100 - failed)


def test_clusters_join_late_and_change_too() -> None:
    result = tried(terms(), TrialConditions(labels=RINGS, late=0.3))
    assert (result.joined, result.clusters) == (30, 100)
    assert sum(stage.succeeded for stage in result.stages) == 100


def test_a_rollout_halts_for_good_unless_it_is_resumed() -> None:
    strict = terms(stages=(Stage(name="all", max_concurrency=10),))
    halted = tried(strict, TrialConditions(fail=0.05))
    assert (halted.phase, halted.succeeded, halted.stages[0].ended) == (RolloutPhase.HALTED, False, None)
    assert halted.halts[0].message.startswith("stage all has ")
    resumed = tried(strict, TrialConditions(fail=0.05, resumes=True))
    assert resumed.succeeded and resumed.halts[0] == halted.halts[0]
    assert resumed.stages[0].halts == len(resumed.halts) > 0


def test_a_cluster_that_hangs_without_a_deadline_keeps_the_rollout_from_its_end() -> None:
    endless = terms(stages=(Stage(name="all", max_concurrency=50, progress_deadline="0s"),))
    result = tried(endless, TrialConditions(hang=0.01))
    assert (result.phase, result.stages[0].working) == (RolloutPhase.PROGRESSING, 1)


def test_a_cluster_that_hangs_fails_at_its_deadline() -> None:
    result = tried(terms(stages=(Stage(name="all", progress_deadline="20m"),)), TrialConditions(clusters=1, hang=1.0))
    assert [(halt.at, halt.stage) for halt in result.halts] == [(1200.0, "all")]


def test_a_policy_that_is_paused_admits_nothing() -> None:
    conditions = TrialConditions()
    result = run_trial(terms(), trial_fleet(terms(), conditions), conditions, paused="spec.paused is true")
    assert (result.phase, result.message) == (RolloutPhase.PAUSED, "spec.paused is true")
    assert all(stage.began is None for stage in result.stages)


def test_windows_of_the_clusters_are_respected() -> None:
    whole = terms(stages=(Stage(name="all", max_concurrency=20, windows="Respect"),))
    result = tried(whole, TrialConditions(window="220000+0000-230000+0000 Wed"))
    assert result.stages[0].began == (2 * 24 + 22) * HOUR  # the clock begins on a Monday at midnight
    assert result.seconds > 7 * 24 * HOUR  # one window is too short for all


def test_without_labels_each_stage_gets_as_many_clusters() -> None:
    expressions = [{"key": "tier", "operator": "Exists"}, {"key": "zone", "operator": "In", "values": ["b", "a"]}]
    stages = tuple(
        Stage(name=name, clusters=clusters, max_concurrency=50)
        for name, clusters in (("one", CANARY), ("two", {"matchExpressions": expressions}), ("three", {}))
    )
    result = tried(terms(stages=stages), TrialConditions(clusters=30))
    assert [stage.clusters for stage in result.stages] == [10, 10, 10, 0]
