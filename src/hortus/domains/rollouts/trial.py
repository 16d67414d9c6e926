"""A rollout on virtual time: clusters that fail, hang, flap or join late, under the terms of a policy.

    run_trial(terms, trial_fleet(terms, conditions), conditions, paused="", record=series.add) -> TrialResult

Every decision is made by `decisions.decide`, as in the controllers; this module plays the clusters, the people who
approve and resume, and the clock. No server takes part, so days pass within seconds. The seed decides everything that
is left to chance.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from hortus.domains.rollouts.decisions import (
    WAITS_FOR_APPROVAL,
    AdmittedCluster,
    Orders,
    RolloutDecision,
    RolloutMember,
    RolloutMemory,
    StageView,
    Standing,
    State,
    decide,
)
from hortus.domains.rollouts.terms import Terms, concurrency
from hortus.domains.rollouts.trialfleet import TrialCluster, TrialConditions
from hortus.domains.rollouts.windows import window
from hortus.engine.rollouts.types import RolloutPhase

BEGIN: Final = 4 * 86_400.0
"""The virtual clock begins on a Monday at midnight UTC, 1970-01-05."""
_TICKS: Final = 60
"""Outcomes are seen at multiples of this part of the change time, so that one decision answers several of them."""

Record = Callable[[float, Mapping[str, float]], None]
"""Takes the seconds since the begin, and clusters by stage and standing, such as `canary working`."""


class TrialStage(msgspec.Struct, frozen=True):
    """The course of one stage. Times are seconds since the begin, None where that did not happen."""

    name: str
    clusters: int
    limit: int
    """Clusters that may be in work at once."""
    most_in_work: int
    began: float | None
    """When its first cluster was admitted."""
    settled: float | None
    """When its last cluster was done and the soak began."""
    ended: float | None
    """When the next stage could begin."""
    succeeded: int
    failed: int
    """Failed at the end."""
    healed: int
    """Failed, and succeeded later."""
    waiting: int
    working: int
    halts: int


class TrialHalt(msgspec.Struct, frozen=True):
    """A halt of the rollout."""

    at: float
    """Seconds since the begin."""
    stage: str
    message: str


class TrialResult(msgspec.Struct, frozen=True):
    """The course of a rollout."""

    phase: str
    message: str
    seconds: float
    """The time of the whole rollout."""
    clusters: int
    joined: int
    """Clusters that joined after the begin."""
    excluded: int
    """Clusters that no stage selects and the policy leaves out."""
    decisions: int
    stages: tuple[TrialStage, ...]
    halts: tuple[TrialHalt, ...]

    @property
    def succeeded(self) -> bool:
        return self.phase == RolloutPhase.SUCCEEDED


@dataclass
class _Tally:
    """The part of a stage's course that the last decision does not show."""

    began: float | None = None
    ended: float | None = None
    most: int = 0
    failures: set[str] = field(default_factory=set)
    halts: int = 0


def run_trial(
    terms: Terms,
    fleet: Mapping[str, TrialCluster],
    conditions: TrialConditions,
    *,
    paused: str = "",
    record: Record = lambda at, values: None,
) -> TrialResult:
    """Runs a rollout until it ends, halts for good, or nothing can happen any more."""
    return _Trial(terms, fleet, conditions, paused, record).run()


class _Trial:
    def __init__(
        self,
        terms: Terms,
        fleet: Mapping[str, TrialCluster],
        conditions: TrialConditions,
        paused: str,
        record: Record,
    ) -> None:
        self._terms = terms
        self._fleet = fleet
        self._conditions = conditions
        self._record = record
        self._window = window(conditions.window) if conditions.window else None
        self._now = BEGIN
        self._tick = max(1.0, conditions.change_time / _TICKS)
        self._members: dict[str, RolloutMember] = {}
        self._events: list[tuple[float, int, str, State]] = []
        """Heap of (time, number, cluster, its next state)."""
        self._numbers = itertools.count()
        self._approvals: dict[str, float] = {}
        """When each stage that waited for an approval gets it."""
        self._admitted: dict[str, AdmittedCluster] = {}
        self._memory = RolloutMemory()
        self._orders = Orders(paused=paused)
        self._deadlines = {stage.name: stage.progress_deadline for stage in terms.stages}
        self._tallies = {stage.name: _Tally() for stage in terms.stages}
        self._halts: list[TrialHalt] = []
        self._decisions = 0
        for name, cluster in fleet.items():
            self._expect(BEGIN + cluster.joins, name, State.WAITING)

    def run(self) -> TrialResult:
        while True:
            self._happen()
            decision = self._decide()
            resumed = decision.phase == RolloutPhase.HALTED and self._conditions.resumes
            if resumed:
                self._orders = self._orders._replace(resumes=decision.memory.halts)
            elif decision.phase in (RolloutPhase.SUCCEEDED, RolloutPhase.HALTED):
                return self._result(decision)
            else:
                upcoming = self._next(decision)
                if upcoming is None:
                    return self._result(decision)
                self._now = upcoming

    # The clusters.

    def _expect(self, at: float, name: str, state: State) -> None:
        at = BEGIN + math.ceil((at - BEGIN) / self._tick) * self._tick
        heapq.heappush(self._events, (at, next(self._numbers), name, state))

    def _happen(self) -> None:
        """Everything that is due happens."""
        while self._events and self._events[0][0] <= self._now:
            _, _, name, state = heapq.heappop(self._events)
            self._members[name] = RolloutMember(name, self._fleet[name].labels, state)
        due = [stage for stage, at in self._approvals.items() if at <= self._now]
        self._orders = self._orders._replace(approved=self._orders.approved.union(due))

    def _admit(self, one: AdmittedCluster) -> None:
        self._admitted[one.cluster] = one
        cluster = self._fleet[one.cluster]
        self._members[one.cluster] = self._members[one.cluster]._replace(state=State.MOVING)
        ends = self._now + cluster.takes
        match cluster.outcome:
            case "succeeds":
                self._expect(ends, one.cluster, State.SUCCEEDED)
            case "fails":
                self._expect(ends, one.cluster, State.FAILED)
            case "flaps":
                self._expect(ends, one.cluster, State.FAILED)
                self._expect(ends + cluster.heals, one.cluster, State.SUCCEEDED)

    # The decisions.

    def _decide(self) -> RolloutDecision:
        members = self._members.values()
        if self._window is not None:
            opens = self._window.opens(self._now)
            members = [member._replace(window_opens=opens) for member in members]  # type: ignore[assignment]
        decision = decide(self._terms, members, self._admitted, self._memory, self._orders, now=self._now)
        self._decisions += 1
        self._observe(decision)
        for one in decision.admit:
            self._admit(one)
        self._memory = decision.memory
        return decision

    def _next(self, decision: RolloutDecision) -> float | None:
        """The next time at which a decision may differ; None if there is none."""
        if decision.message.endswith(WAITS_FOR_APPROVAL):
            self._approvals.setdefault(decision.stage, self._now + self._conditions.approval_time)
        times = [at for stage, at in self._approvals.items() if stage not in self._orders.approved]
        times += [self._events[0][0]] if self._events else []
        times += [decision.due] if decision.due is not None and not self._orders.paused else []
        # The decision that admits a cluster does not know its deadline yet.
        times += [one.at + self._deadlines[one.stage] for one in decision.admit if self._deadlines[one.stage]]
        return min(times, default=None)

    # The course.

    def _observe(self, decision: RolloutDecision) -> None:
        at = self._now - BEGIN
        if decision.memory.halts > self._memory.halts:
            stage = decision.stage or decision.stages[-1].terms.name
            self._tallies[stage].halts += 1
            self._halts.append(TrialHalt(at, stage, decision.message))
        fresh = dict.fromkeys(self._tallies, 0)
        for one in decision.admit:
            fresh[one.stage] += 1
        for view in decision.stages:
            self._count(view, fresh[view.terms.name], at)
        self._record(at, _counts(decision, fresh))

    def _count(self, view: StageView, fresh: int, at: float) -> None:
        tally = self._tallies[view.terms.name]
        if fresh and tally.began is None:
            tally.began = at
        if view.memory.ended and tally.ended is None:
            tally.ended = at
        tally.most = max(tally.most, view.counts[Standing.RUNNING] + fresh)
        if view.counts[Standing.FAILED]:
            tally.failures.update(one.member.cluster for one in view.clusters if one.standing is Standing.FAILED)

    def _result(self, decision: RolloutDecision) -> TrialResult:
        return TrialResult(
            phase=decision.phase,
            message=decision.message,
            seconds=self._now - BEGIN,
            clusters=len(self._members),
            joined=sum(self._fleet[name].joins > 0 for name in self._members),
            excluded=len(decision.excluded),
            decisions=self._decisions,
            stages=tuple(map(self._stage, decision.stages)),
            halts=tuple(self._halts),
        )

    def _stage(self, view: StageView) -> TrialStage:
        tally, settled_at = self._tallies[view.terms.name], view.memory.settled_at
        failed = view.counts[Standing.FAILED]
        return TrialStage(
            name=view.terms.name,
            clusters=len(view.clusters),
            limit=concurrency(view.terms.max_concurrency, len(view.clusters)),
            most_in_work=tally.most,
            began=tally.began,
            settled=None if settled_at is None or not view.clusters else settled_at - BEGIN,
            ended=tally.ended,
            succeeded=view.counts[Standing.SUCCEEDED],
            failed=failed,
            healed=len(tally.failures) - failed,
            waiting=view.counts[Standing.PENDING],
            working=view.counts[Standing.RUNNING],
            halts=tally.halts,
        )


def _counts(decision: RolloutDecision, fresh: Mapping[str, int]) -> dict[str, float]:
    """The clusters by stage and standing, after `fresh` of each stage were admitted."""
    found: dict[str, float] = {}
    for view in decision.stages:
        name, counts = view.terms.name, view.counts
        found[f"{name} waiting"] = counts[Standing.PENDING] - fresh[name]
        found[f"{name} working"] = counts[Standing.RUNNING] + fresh[name]
        found[f"{name} succeeded"] = counts[Standing.SUCCEEDED]
        found[f"{name} failed"] = counts[Standing.FAILED]
    return found
