"""The terms of a rollout, ready for decisions: selectors parsed, durations in seconds, shares in clusters."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from hortus.engine.rollouts.types import PolicyTerms, Stage
from hortus.kube import durations
from hortus.kube.selectors import LabelSelector, SelectorError

UNSELECTED = "unselected"
"""The stage after all others, for clusters that none selects."""

DEFAULT_TERMS = PolicyTerms(stages=(Stage(name="all", max_concurrency="10%", max_failures="5%"),))
"""The terms of a rollout that names no policy."""


class TermsError(ValueError):
    """Terms that cannot be followed; the text names the stage and the field."""


class StageTerms(NamedTuple):
    """One stage. Times are in seconds."""

    name: str
    selector: LabelSelector | None
    """None selects nothing: the stage of the clusters that are left."""
    order: str
    max_concurrency: int | str
    max_failures: int | str
    min_success_time: float
    progress_deadline: float
    """0 for no limit."""
    approval: str
    respects_windows: bool


class Terms(NamedTuple):
    """The terms of a rollout."""

    stages: tuple[StageTerms, ...]
    """The last one takes the clusters that none selects, where the policy puts these last."""
    max_failures: int | str
    unselected: str
    unavailable: str
    reverts: bool


def terms_of(policy: PolicyTerms | None) -> Terms:
    """The terms of a policy; DEFAULT_TERMS without one. Raises TermsError."""
    policy = policy or DEFAULT_TERMS
    stages = [_stage(stage) for stage in policy.stages]
    if policy.unselected == "Last":
        stages.append(stages[-1]._replace(name=UNSELECTED, selector=None, approval="None"))
    return Terms(
        tuple(stages), policy.max_failures, policy.unselected, policy.unavailable, policy.on_failure == "HaltAndRevert"
    )


def _stage(stage: Stage) -> StageTerms:
    if stage.name == UNSELECTED:
        raise TermsError(f"stage {stage.name}: the name is taken by the clusters that no stage selects")
    try:
        selector = LabelSelector.from_object(stage.clusters)
    except SelectorError as error:
        raise TermsError(f"stage {stage.name}: clusters: {error}") from error
    return StageTerms(
        name=stage.name,
        selector=selector,
        order=stage.order,
        max_concurrency=stage.max_concurrency,
        max_failures=stage.max_failures,
        min_success_time=seconds(stage.min_success_time),
        progress_deadline=seconds(stage.progress_deadline),
        approval=stage.approval,
        respects_windows=stage.windows == "Respect",
    )


@lru_cache
def seconds(duration: str) -> float:
    """The seconds of a duration such as 1h30m. Raises TermsError."""
    try:
        return durations.parse(duration) / durations.SECOND
    except durations.DurationError as error:
        raise TermsError(str(error)) from error


def concurrency(share: int | str, clusters: int) -> int:
    """The clusters that may be in work at once: at least 1."""
    return max(1, number(share, clusters))


def number(share: int | str, clusters: int) -> int:
    """A number of clusters, or a percentage of `clusters` rounded down."""
    return share if isinstance(share, int) else int(share.rstrip("%")) * clusters // 100
