"""The decision of a rollout: the clusters to admit next, from its terms, its clusters, earlier decisions and the time.

    decide(terms, members, admitted, memory, orders, now=now) -> RolloutDecision

The function is pure and reads top to bottom: place the clusters in stages, judge each, add up, halt if a budget is
exceeded, walk the stages, admit. The same arguments give the same decision, so a process that is killed anywhere and
starts again goes on where the last one was. `docs/rollouts.md` lists the laws that it keeps;
`tests/domains/rollouts/test_laws.py` tries them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from hortus.domains.rollouts.terms import UNSELECTED, StageTerms, Terms, concurrency, number
from hortus.engine.rollouts.types import RolloutPhase

WAITS_FOR_APPROVAL = "waits for approval"
"""The end of the message of a rollout whose next step is somebody's approval."""


class State(StrEnum):
    """The state of a cluster's object with regard to the change."""

    WAITING = "waiting"
    """Not at the new version."""
    MOVING = "moving"
    """On its way and not finished: to the new version or, by a rollout that this one supersedes, to another."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class RolloutMember(NamedTuple):
    """A cluster that a change concerns."""

    cluster: str
    """Name of its ClusterProfile."""
    labels: Mapping[str, str]
    state: State
    message: str = ""
    """The failure of the object."""
    unavailable: str = ""
    """The reason for which the cluster cannot change now; empty when it can."""
    window_opens: float = 0.0
    """When its maintenance window opens, in seconds since the epoch; not after now while it is open."""


class AdmittedCluster(NamedTuple):
    """A cluster that was admitted."""

    cluster: str
    stage: str
    at: float
    """Seconds since the epoch."""


class StageMemory(NamedTuple):
    """The part of a stage that its clusters do not show."""

    settled_at: float | None = None
    """When the last of its clusters ended."""
    ended: bool = False
    """The next stage may begin. It stays so when a cluster joins the stage later."""
    forgiven: int = 0
    """Failures that do not count since the rollout was resumed."""
    empty: bool = False
    """It ended without a cluster. It begins with its first one, and the stages after it wait again."""


class RolloutMemory(NamedTuple):
    """The part of a rollout that its clusters do not show; kept in its status."""

    stages: Mapping[str, StageMemory] = {}
    halts: int = 0
    """The number of times it halted."""
    forgiven_halts: int = 0
    """The number of halts that somebody resumed."""


class Orders(NamedTuple):
    """The orders of people."""

    paused: str = ""
    """The reason for which nothing is admitted; empty when it may."""
    approved: frozenset[str] = frozenset()
    resumes: int = 0


class Expected(NamedTuple):
    """Clusters that may still ask for a change that has just begun."""

    labels: Sequence[Mapping[str, str]] = ()
    """Their labels."""
    until: float = 0.0
    """When nobody is expected any more, in seconds since the epoch."""


NOBODY: Final = Expected()


class Standing(StrEnum):
    """The state of a cluster in the rollout."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


class Judged(NamedTuple):
    """A cluster with its stage and its state in the rollout."""

    member: RolloutMember
    stage: str
    standing: Standing
    message: str = ""
    due: float | None = None
    """When time alone changes the standing."""


class StageView(NamedTuple):
    """One stage in numbers."""

    terms: StageTerms
    clusters: tuple[Judged, ...]
    memory: StageMemory
    counts: Mapping[Standing, int]

    @property
    def is_settled(self) -> bool:
        return not self.counts[Standing.PENDING] and not self.counts[Standing.RUNNING]

    @property
    def excess(self) -> int:
        """Failures beyond the budget of the stage."""
        return self.counts[Standing.FAILED] - self.memory.forgiven - number(self.terms.max_failures, len(self.clusters))


class RolloutDecision(NamedTuple):
    """The clusters to admit now, and the state of the rollout."""

    admit: tuple[AdmittedCluster, ...]
    phase: str
    stage: str
    """The stage under way; empty when all clusters are done."""
    message: str
    """The reason for which the rollout is where it is, with the owner of the next step where somebody has to act."""
    stages: tuple[StageView, ...]
    memory: RolloutMemory
    excluded: tuple[str, ...] = ()
    due: float | None = None
    """When to decide again if nothing happens until then; seconds since the epoch."""


def decide(
    terms: Terms,
    members: Iterable[RolloutMember],
    admitted: Mapping[str, AdmittedCluster],
    memory: RolloutMemory,
    orders: Orders,
    expected: Expected = NOBODY,
    *,
    now: float,
) -> RolloutDecision:
    """Decide once. `admitted` holds all clusters admitted so far, by name. Times are seconds since the epoch.

    A stage that is to get one of the `expected` clusters does not end before `expected.until`.
    """
    judged, excluded = _placed(terms, members, admitted, now)
    stages = _forgiven(_views(terms, judged, memory), memory, orders)
    memory = memory._replace(forgiven_halts=min(memory.halts, orders.resumes))
    excess = _excess(terms, stages)
    if excess and memory.halts <= orders.resumes:
        memory = memory._replace(halts=orders.resumes + 1)
    awaited = {_stage_of(terms, labels) for labels in expected.labels} if now < expected.until else set()
    stages = tuple(_settled(stages, orders, awaited, now))
    memory = memory._replace(stages={view.terms.name: view.memory for view in stages})
    obstacle = _obstacle(terms, excluded, memory, orders, excess)
    admit = () if obstacle else _admissions(stages, orders, now)
    current = _current(stages)
    phase, message = obstacle or _progress(current, admit, admitted, orders, awaited, now)
    due = [at for at in (_due(stages, now), expected.until if awaited else None) if at is not None]
    return RolloutDecision(
        admit,
        phase,
        current.terms.name if current else "",
        message,
        stages,
        memory,
        excluded,
        min(due, default=None),
    )


# Where each cluster belongs.


def _placed(
    terms: Terms, members: Iterable[RolloutMember], admitted: Mapping[str, AdmittedCluster], now: float
) -> tuple[Mapping[str, list[Judged]], tuple[str, ...]]:
    """The clusters of each stage, judged, and those that no stage takes. An admitted cluster keeps its stage."""
    by_name = {stage.name: stage for stage in terms.stages}
    placed: dict[str, list[Judged]] = {name: [] for name in by_name}
    excluded: list[str] = []
    for member in members:
        entry = admitted.get(member.cluster)
        name = entry.stage if entry is not None and entry.stage in placed else _stage_of(terms, member.labels)
        if name is None:
            excluded.append(member.cluster)
        else:
            placed[name].append(_judged(terms, by_name[name], member, entry, now))
    return placed, tuple(sorted(excluded))


def _stage_of(terms: Terms, labels: Mapping[str, str]) -> str | None:
    for stage in terms.stages:
        if stage.selector is not None and stage.selector.matches(labels):
            return stage.name
    return UNSELECTED if terms.unselected == "Last" else None


def _judged(
    terms: Terms, stage: StageTerms, member: RolloutMember, entry: AdmittedCluster | None, now: float
) -> Judged:
    if member.state is State.SUCCEEDED:
        return Judged(member, stage.name, Standing.SUCCEEDED)
    if member.state is State.FAILED:
        return Judged(member, stage.name, Standing.FAILED, member.message or "the object reports a failure")
    if entry is not None:
        return _running(stage, member, entry, now)
    if member.state is State.MOVING:
        return Judged(member, stage.name, Standing.RUNNING)
    if member.unavailable and terms.unavailable == "Skip":
        return Judged(member, stage.name, Standing.SKIPPED, member.unavailable)
    if member.unavailable and terms.unavailable == "Fail":
        return Judged(member, stage.name, Standing.FAILED, member.unavailable)
    return Judged(member, stage.name, Standing.PENDING, member.unavailable)


def _running(stage: StageTerms, member: RolloutMember, entry: AdmittedCluster, now: float) -> Judged:
    if not stage.progress_deadline:
        return Judged(member, stage.name, Standing.RUNNING)
    over = entry.at + stage.progress_deadline
    if now < over:
        return Judged(member, stage.name, Standing.RUNNING, due=over)
    text = f"has not succeeded within {stage.progress_deadline:g} s of its admission"
    return Judged(member, stage.name, Standing.FAILED, f"{text}: {member.unavailable}" if member.unavailable else text)


def _views(terms: Terms, placed: Mapping[str, Sequence[Judged]], memory: RolloutMemory) -> tuple[StageView, ...]:
    views = []
    for stage in terms.stages:
        clusters = tuple(sorted(placed[stage.name], key=lambda one: _rank(stage, one.member)))
        counts = dict.fromkeys(Standing, 0)
        for one in clusters:
            counts[one.standing] += 1
        views.append(StageView(stage, clusters, memory.stages.get(stage.name, StageMemory()), counts))
    return tuple(views)


def _rank(stage: StageTerms, member: RolloutMember) -> tuple[bool, str, str]:
    """Clusters without the label come after those with it."""
    value = member.labels.get(stage.order, "") if stage.order else ""
    return bool(stage.order) and stage.order not in member.labels, value, member.cluster


# Budgets.


def _forgiven(stages: tuple[StageView, ...], memory: RolloutMemory, orders: Orders) -> tuple[StageView, ...]:
    """A resume forgives the failures of its moment; a failure that heals takes its forgiveness along."""
    resumed = memory.forgiven_halts < memory.halts <= orders.resumes
    return tuple(
        view._replace(
            memory=view.memory._replace(
                forgiven=view.counts[Standing.FAILED]
                if resumed
                else min(view.memory.forgiven, view.counts[Standing.FAILED])
            )
        )
        for view in stages
    )


def _excess(terms: Terms, stages: tuple[StageView, ...]) -> str:
    """The budget that the failures exceed, in words; empty when they are within all."""
    for view in stages:
        if view.excess > 0:
            allowed = number(view.terms.max_failures, len(view.clusters))
            failed = view.counts[Standing.FAILED]
            return f"stage {view.terms.name} has {failed} failed cluster{'s' * (failed > 1)} and bears {allowed}"
    failed = sum(view.counts[Standing.FAILED] for view in stages)
    allowed = number(terms.max_failures, sum(len(view.clusters) for view in stages))
    if failed - sum(view.memory.forgiven for view in stages) > allowed:
        return f"{failed} clusters failed, and the rollout bears {allowed}"
    return ""


# Stages.


def _settled(
    stages: Iterable[StageView], orders: Orders, awaited: Collection[str | None], now: float
) -> Iterator[StageView]:
    """The stages, each ended when all before it have, its clusters have, it has soaked, and it is approved."""
    is_open = True
    for view in stages:
        memory = view.memory
        if memory.empty and view.clusters:
            memory = memory._replace(ended=False, empty=False)
        if is_open and not memory.ended:
            memory = _memory_of(view._replace(memory=memory), orders, view.terms.name in awaited, now)
        is_open = memory.ended
        yield view._replace(memory=memory)


def _memory_of(view: StageView, orders: Orders, is_awaited: bool, now: float) -> StageMemory:
    if not view.is_settled or view.excess > 0:
        return view.memory._replace(settled_at=None)
    settled_at = now if view.memory.settled_at is None else view.memory.settled_at
    soaked = now >= settled_at + view.terms.min_success_time
    approved = view.terms.approval == "None" or view.terms.name in orders.approved
    empty = not view.clusters
    ended = not is_awaited and (empty or (soaked and approved))
    return view.memory._replace(settled_at=settled_at, ended=ended, empty=ended and empty)


def _obstacle(
    terms: Terms, excluded: tuple[str, ...], memory: RolloutMemory, orders: Orders, excess: str
) -> tuple[str, str] | None:
    """The phase and the reason for which nothing at all is admitted."""
    if memory.halts > orders.resumes:
        return RolloutPhase.HALTED, excess or "failures exceeded a budget"
    if excluded and terms.unselected == "Refuse":
        few = ", ".join(excluded[:5])
        return RolloutPhase.PENDING, f"no stage selects {len(excluded)} clusters ({few}), which the policy refuses"
    if orders.paused:
        return RolloutPhase.PAUSED, orders.paused
    return None


def _admissions(stages: tuple[StageView, ...], orders: Orders, now: float) -> tuple[AdmittedCluster, ...]:
    """The clusters to admit: in each stage that ended, for those that joined late, and in the first that did not."""
    admit: list[AdmittedCluster] = []
    for view in stages:
        stage = view.terms
        if stage.approval != "Before" or stage.name in orders.approved:
            free = concurrency(stage.max_concurrency, len(view.clusters)) - view.counts[Standing.RUNNING]
            ready = (one for one in view.clusters if _is_ready(stage, one, now))
            admit += [
                AdmittedCluster(one.member.cluster, stage.name, now) for one, _ in zip(ready, range(free), strict=False)
            ]
        if not view.memory.ended:
            break
    return tuple(admit)


def _is_ready(stage: StageTerms, one: Judged, now: float) -> bool:
    if one.standing is not Standing.PENDING or one.member.unavailable:
        return False
    return not stage.respects_windows or one.member.window_opens <= now


# The report.


def _current(stages: Sequence[StageView]) -> StageView | None:
    """The first stage that has not ended, else the first that has clusters which joined late and are not done."""
    unended = (view for view in stages if not view.memory.ended)
    return next(unended, None) or next((view for view in stages if not view.is_settled), None)


def _progress(
    current: StageView | None,
    admit: tuple[AdmittedCluster, ...],
    admitted: Mapping[str, AdmittedCluster],
    orders: Orders,
    awaited: Collection[str | None],
    now: float,
) -> tuple[str, str]:
    if current is None:
        return RolloutPhase.SUCCEEDED, "all clusters have changed" if admitted else "no cluster had to change"
    phase = RolloutPhase.PROGRESSING if admit or admitted else RolloutPhase.PENDING
    stage, counts = current.terms, current.counts
    if current.is_settled and stage.name in awaited:
        return phase, f"stage {stage.name} waits for clusters that have not asked yet"
    if stage.name not in orders.approved and (stage.approval == "Before" or _waits_after(current, now)):
        return phase, f"stage {stage.name} {WAITS_FOR_APPROVAL}"
    if current.is_settled:
        return phase, f"stage {stage.name} ended well and waits {stage.min_success_time:g} s before the next"
    done = counts[Standing.SUCCEEDED] + counts[Standing.FAILED]
    return phase, f"stage {stage.name}: {done} of {len(current.clusters)} clusters are done"


def _waits_after(view: StageView, now: float) -> bool:
    settled_at = view.memory.settled_at
    soaked = settled_at is not None and now >= settled_at + view.terms.min_success_time
    return view.terms.approval == "After" and soaked


def _due(stages: tuple[StageView, ...], now: float) -> float | None:
    """The next time at which time alone changes a decision."""
    due: list[float] = []
    for view in stages:
        due += [one.due for one in view.clusters if one.due is not None]
        if view.terms.respects_windows:
            due += [one.member.window_opens for one in view.clusters if one.standing is Standing.PENDING]
        if not view.memory.ended and view.memory.settled_at is not None:
            due.append(view.memory.settled_at + view.terms.min_success_time)
        if not view.memory.ended:
            break
    return min((at for at in due if at > now), default=None)
