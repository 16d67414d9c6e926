"""The clusters of a trial: their labels, when they join, and the outcome of their change, decided by a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from hortus.domains.rollouts.terms import StageTerms, Terms
from hortus.kube.selectors import LabelSelector, Operator

Outcome = Literal["succeeds", "fails", "hangs", "flaps"]
_JOINING: Final = 10
"""Change times within which late clusters join."""


class LabelShares(NamedTuple):
    """A label, and the share of the clusters that has each of its values. The other clusters do not have it."""

    key: str
    shares: Mapping[str, float]


class TrialConditions(NamedTuple):
    """The fleet and the faults of a trial. Times are seconds; shares are of all clusters."""

    clusters: int = 100
    labels: Sequence[LabelShares] = ()
    """Empty gives each stage of the policy as many clusters, with labels that it selects."""
    fail: float = 0.0
    hang: float = 0.0
    """Clusters that never finish."""
    flap: float = 0.0
    """Clusters that fail and heal."""
    late: float = 0.0
    change_time: float = 900.0
    """The average time of one cluster's change; each takes half to one and a half times as long."""
    approval_time: float = 0.0
    """Time that an approval takes."""
    window: str = ""
    """Maintenance window of all clusters; empty for always."""
    resumes: bool = False
    """The rollout is resumed after each halt."""
    seed: int = 1


class TrialCluster(NamedTuple):
    """One cluster, and its course once it is admitted. Times are seconds."""

    labels: Mapping[str, str]
    joins: float
    """When it joins the fleet, after the begin."""
    outcome: Outcome
    takes: float
    heals: float
    """Time between the failure and the recovery of a cluster that flaps."""


def trial_fleet(terms: Terms, conditions: TrialConditions) -> dict[str, TrialCluster]:
    """The clusters by name. The same arguments give the same fleet."""
    chance = random.Random(conditions.seed)  # noqa: S311 - a simulation is repeatable, not secret
    count, time = conditions.clusters, conditions.change_time
    labels = _labels(terms, conditions, chance)
    outcomes = _spread(
        count, {"fails": conditions.fail, "hangs": conditions.hang, "flaps": conditions.flap}, "succeeds", chance
    )
    joins = _spread(count, {"late": conditions.late}, "", chance)
    width = len(str(count - 1))
    return {
        f"cluster-{number:0{width}}": TrialCluster(
            labels[number],
            chance.uniform(0, _JOINING) * time if joins[number] else 0.0,
            outcomes[number],  # type: ignore[arg-type]
            chance.uniform(0.5, 1.5) * time,
            chance.uniform(0.5, 1.5) * time,
        )
        for number in range(count)
    }


def _spread(count: int, shares: Mapping[str, float], others: str, chance: random.Random) -> list[str]:
    """A value for each of `count` clusters: each share at random places, at least one unless it is 0."""
    found: list[str] = []
    for value, share in shares.items():
        found += [value] * (max(1, round(share * count)) if share else 0)
    found = [*found[:count], *[others] * (count - len(found))]
    chance.shuffle(found)
    return found


def _labels(terms: Terms, conditions: TrialConditions, chance: random.Random) -> list[dict[str, str]]:
    if not conditions.labels:
        stages = [_selected(stage) for stage in terms.stages if stage.selector is not None]
        return [stages[number % len(stages)] for number in range(conditions.clusters)]
    found: list[dict[str, str]] = [{} for _ in range(conditions.clusters)]
    for key, shares in conditions.labels:
        for labels, value in zip(found, _spread(len(found), shares, "", chance), strict=True):
            labels.update({key: value} if value else {})
    return found


def _selected(stage: StageTerms) -> dict[str, str]:
    """Labels that a stage selects."""
    found: dict[str, str] = {}
    for part in (stage.selector or LabelSelector()).requirements:
        if part.operator is Operator.IN:
            found[part.key] = part.values[0]
        elif part.operator is Operator.EXISTS:
            found.setdefault(part.key, "any")
    return found
