"""This domain's metrics, read from the Rollouts themselves: every replica shows the same.

There is no label for a Rollout: `hortus rollout list` names them, and a fleet has many over time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from hortus.domains.rollouts.terms import seconds
from hortus.engine import Change, NotReadable, TypedCache, read
from hortus.engine.rollouts.types import Rollout, RolloutPhase, StageStatus
from hortus.kube.clock import Clock
from hortus.kube.objects import ObjectKey, parse_time

PHASES = (
    RolloutPhase.PENDING,
    RolloutPhase.PROGRESSING,
    RolloutPhase.PAUSED,
    RolloutPhase.HALTED,
    RolloutPhase.ABORTED,
    RolloutPhase.SUPERSEDED,
    RolloutPhase.SUCCEEDED,
)
_MOVING = frozenset({RolloutPhase.PENDING, RolloutPhase.PROGRESSING})


class RolloutMetrics(Collector):
    """Counts when it is asked."""

    def __init__(self, registry: CollectorRegistry, rollouts: TypedCache[Rollout], clock: Clock) -> None:
        self._rollouts = rollouts
        self._clock = clock
        self._moved: dict[ObjectKey, tuple[tuple[StageStatus, ...], float]] = {}
        rollouts.raw.subscribe(self._on_change)
        registry.register(self)

    def _on_change(self, change: Change) -> None:
        """Note when the numbers of a Rollout last changed, as far as this process saw it."""
        if change.new is None:
            self._moved.pop(change.key, None)
            return
        try:
            stages = read(Rollout, change.new).status.stages
        except NotReadable:
            return
        known = self._moved.get(change.key)
        if known is None or known[0] != stages:
            self._moved[change.key] = stages, self._clock.now()

    def describe(self) -> Iterator[Metric]:
        yield from self._families(Counter(), awaiting=0, still=None)

    def collect(self) -> Iterator[Metric]:
        phases: Counter[str] = Counter()
        awaiting, still, now = 0, list[float](), self._clock.now()
        for key, rollout in self._readable():
            phase = rollout.status.phase or RolloutPhase.PENDING
            phases[phase] += 1
            if phase not in _MOVING:
                continue
            if awaits_approval(rollout, now):
                awaiting += 1
            elif not soaks(rollout):
                still.append(self._moved[key][1] if key in self._moved else now)
        yield from self._families(phases, awaiting=awaiting, still=min(still, default=None))

    def _readable(self) -> Iterator[tuple[ObjectKey, Rollout]]:
        for key in self._rollouts.raw:
            with suppress(NotReadable):
                if (rollout := self._rollouts.get(key)) is not None:
                    yield key, rollout

    def _families(self, phases: Counter[str], *, awaiting: int, still: float | None) -> Iterator[Metric]:
        by_phase = GaugeMetricFamily("hortus_rollouts", "Rollouts, by phase.", labels=("phase",))
        for phase in PHASES:
            by_phase.add_metric((phase,), float(phases[phase]))
        yield by_phase
        yield GaugeMetricFamily(
            "hortus_rollouts_awaiting_approval", "Rollouts of which a stage waits for approval.", value=float(awaiting)
        )
        oldest = GaugeMetricFamily(
            "hortus_rollouts_oldest_progress_timestamp_seconds",
            "When the Rollout under way that stands still the longest last changed a number; none while none is.",
        )
        if still is not None:
            oldest.add_metric((), still)
        yield oldest


def awaits_approval(rollout: Rollout, now: float) -> bool:
    """True when the stage under way goes on once somebody approves it."""
    stages = rollout.spec.policy.stages if rollout.spec.policy is not None else ()
    terms = next((one for one in stages if one.name == rollout.status.stage), None)
    if terms is None or terms.approval == "None" or terms.name in rollout.spec.approved:
        return False
    settled_at = _settled_at(rollout)
    soaked = settled_at is not None and now >= settled_at + seconds(terms.min_success_time)
    return terms.approval == "Before" or soaked


def soaks(rollout: Rollout) -> bool:
    """True when all clusters of the stage under way have ended, and time has to pass before the next."""
    return _settled_at(rollout) is not None


def _settled_at(rollout: Rollout) -> float | None:
    found = next((one.settled_at for one in rollout.status.stages if one.name == rollout.status.stage), None)
    return None if found is None else parse_time(found)
