"""A fleet in which a rollout happens: clusters that move, fail, hibernate, join and change labels, and its decider.

The decider keeps what the product keeps: the admitted clusters (slices), the memory (status) and nothing else. It may
be killed between any two of its writes. `laws` are checked against a history of their own, that no decision reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hortus.domains.rollouts import decisions
from hortus.domains.rollouts.decisions import (
    AdmittedCluster,
    Orders,
    RolloutDecision,
    RolloutMember,
    RolloutMemory,
    State,
)
from hortus.domains.rollouts.terms import UNSELECTED, Terms, concurrency, number
from hortus.engine.rollouts.types import RolloutPhase


class LawBroken(AssertionError):
    """A decision broke a law of rollouts."""


@dataclass
class Cluster:
    labels: dict[str, str]
    state: State = State.WAITING
    unavailable: str = ""
    window: tuple[float, float] | None = None
    """Seconds of each day between which it may change."""

    def opens(self, now: float) -> float:
        if self.window is None:
            return 0.0
        begin, end = self.window
        day, second = now // 86_400 * 86_400, now % 86_400
        if begin <= second < end:
            return 0.0
        return day + begin + (86_400 if second >= end else 0)


@dataclass
class FleetModel:
    terms: Terms
    clusters: dict[str, Cluster]
    now: float = 1_000_000.0
    paused: str = ""
    approved: set[str] = field(default_factory=set)
    resumes: int = 0
    admitted: dict[str, AdmittedCluster] = field(default_factory=dict)
    memory: RolloutMemory = field(default_factory=RolloutMemory)
    last: RolloutDecision | None = None
    begun: set[str] = field(default_factory=set)
    """Stages that have ended with clusters; one that ended without is judged again."""

    def decide(self) -> RolloutDecision:
        return decisions.decide(
            self.terms,
            [
                RolloutMember(
                    name, one.labels, one.state, unavailable=one.unavailable, window_opens=one.opens(self.now)
                )
                for name, one in sorted(self.clusters.items())
            ],
            self.admitted,
            self.memory,
            Orders(paused=self.paused, approved=frozenset(self.approved), resumes=self.resumes),
            now=self.now,
        )

    def step(self, *, lose_slices: bool = False, lose_status: bool = False) -> None:
        """Decide and write, as a decider that may be killed before either write."""
        decision = self.decide()
        if decision != self.decide():
            raise LawBroken("the same history gave two decisions")
        self.check(decision)
        if lose_slices:
            return
        for one in decision.admit:
            self.admitted[one.cluster] = one
        if not lose_status:
            self.memory = decision.memory
            self.begun |= {view.terms.name for view in decision.stages if view.memory.ended and view.clusters}
        self.last = decision

    # The laws.

    def check(self, decision: RolloutDecision) -> None:
        stages = {stage.name: stage for stage in self.terms.stages}
        home = {name: self.home(name) for name in self.clusters}
        for one in decision.admit:
            cluster, stage = self.clusters[one.cluster], stages[one.stage]
            if one.cluster in self.admitted:
                raise LawBroken(f"{one.cluster} was admitted twice")
            if one.stage != home[one.cluster]:
                raise LawBroken(f"{one.cluster} was admitted in {one.stage} and belongs to {home[one.cluster]}")
            if cluster.state is not State.WAITING or cluster.unavailable:
                raise LawBroken(f"{one.cluster} was admitted in state {cluster.state}, {cluster.unavailable}")
            if stage.respects_windows and cluster.opens(self.now) > self.now:
                raise LawBroken(f"{one.cluster} was admitted outside of its window")
            if stage.approval == "Before" and stage.name not in self.approved:
                raise LawBroken(f"stage {stage.name} began without approval")
            if self.paused:
                raise LawBroken("admitted while paused")
        if decision.admit:
            self._check_budgets(home)
            self._check_order(decision, home)
        self._check_concurrency(decision, home)
        if decision.phase == RolloutPhase.SUCCEEDED and any(self.open(name, its) for name, its in home.items() if its):
            raise LawBroken("succeeded while clusters are not done")

    def home(self, name: str) -> str | None:
        if name in self.admitted:
            return self.admitted[name].stage
        for stage in self.terms.stages:
            if stage.selector is not None and stage.selector.matches(self.clusters[name].labels):
                return stage.name
        return UNSELECTED if self.terms.unselected == "Last" else None

    def failed(self, name: str, stage: str | None) -> bool:
        cluster = self.clusters[name]
        if cluster.state is State.SUCCEEDED or stage is None:
            return False
        if cluster.state is State.FAILED:
            return True
        if name in self.admitted:
            limit = next(one.progress_deadline for one in self.terms.stages if one.name == stage)
            return bool(limit) and self.now >= self.admitted[name].at + limit
        return cluster.state is State.WAITING and bool(cluster.unavailable) and self.terms.unavailable == "Fail"

    def unfinished(self, name: str, stage: str | None) -> bool:
        cluster = self.clusters[name]
        begun = name in self.admitted or cluster.state is State.MOVING
        return begun and cluster.state is not State.SUCCEEDED and not self.failed(name, stage)

    def _check_budgets(self, home: dict[str, str | None]) -> None:
        if self.memory.halts > self.resumes:
            raise LawBroken("admitted while halted")
        resumed = self.memory.forgiven_halts < self.memory.halts
        total = 0
        for stage in self.terms.stages:
            members = [name for name, its in home.items() if its == stage.name]
            failures = sum(self.failed(name, stage.name) for name in members)
            past = self.memory.stages.get(stage.name)
            forgiven = failures if resumed else 0 if past is None else past.forgiven
            total += max(0, failures - forgiven)
            if failures - forgiven > number(stage.max_failures, len(members)):
                raise LawBroken(f"admitted while stage {stage.name} is over its budget")
        if total > number(self.terms.max_failures, sum(its is not None for its in home.values())):
            raise LawBroken("admitted while the rollout is over its budget")

    def _check_order(self, decision: RolloutDecision, home: dict[str, str | None]) -> None:
        """A stage begins only when the ones before have ended: well, soaked, approved."""
        for index, stage in enumerate(self.terms.stages):
            if not any(one.stage == stage.name for one in decision.admit):
                continue
            for earlier in self.terms.stages[:index]:
                past = self.memory.stages.get(earlier.name)
                if past is not None and past.ended and earlier.name in self.begun:
                    continue
                members = [name for name, its in home.items() if its == earlier.name]
                if not members:
                    continue
                if any(self.open(name, earlier.name) for name in members):
                    raise LawBroken(f"stage {stage.name} began before {earlier.name} ended")
                settled = None if past is None else past.settled_at
                if self.now < (self.now if settled is None else settled) + earlier.min_success_time:
                    raise LawBroken(f"stage {stage.name} began before {earlier.name} had soaked")
                if earlier.approval != "None" and earlier.name not in self.approved:
                    raise LawBroken(f"stage {stage.name} began before {earlier.name} was approved")

    def open(self, name: str, stage: str | None) -> bool:
        """Returns whether the cluster has neither ended nor been left out."""
        cluster = self.clusters[name]
        if cluster.state is State.SUCCEEDED or self.failed(name, stage):
            return False
        if name in self.admitted or cluster.state is State.MOVING:
            return True
        return not (cluster.unavailable and self.terms.unavailable == "Skip")

    def _check_concurrency(self, decision: RolloutDecision, home: dict[str, str | None]) -> None:
        for stage in self.terms.stages:
            fresh = sum(one.stage == stage.name for one in decision.admit)
            if not fresh:
                continue
            members = [name for name, its in home.items() if its == stage.name]
            running = sum(self.unfinished(name, stage.name) for name in members)
            if running + fresh > concurrency(stage.max_concurrency, len(members)):
                raise LawBroken(f"stage {stage.name}: {running} in work and {fresh} admitted")

    @property
    def is_over(self) -> bool:
        return self.last is not None and self.last.phase == RolloutPhase.SUCCEEDED
