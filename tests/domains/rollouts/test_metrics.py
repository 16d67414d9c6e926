"""The gauges of rollouts, from Rollouts as a cache holds them."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry

from hortus.domains.rollouts.metrics import PHASES, RolloutMetrics
from hortus.engine import Cache, TypedCache
from hortus.engine.rollouts.types import ROLLOUTS, Rollout
from hortus.kube.objects import Object, format_time
from hortus.testing import FakeClock

DAY = 86_400.0


class Gauges:
    """A registry with the metrics of a cache that the test fills."""

    def __init__(self) -> None:
        self.clock, self.cache, self.registry = FakeClock(), Cache("rollouts"), CollectorRegistry()
        RolloutMetrics(self.registry, TypedCache(Rollout, self.cache), self.clock)
        self._version = 0

    def put(self, name: str, phase: str, *, stage: Object | None = None, **spec: Any) -> None:
        self._version += 1
        made: Object = {
            "apiVersion": ROLLOUTS.api_version,
            "kind": "Rollout",
            "metadata": {"name": name, "namespace": "fleet", "resourceVersion": str(self._version)},
            "spec": {"change": {"kind": "k", "subject": "s", "to": "2"}, **spec},
            "status": {"phase": phase, "stage": "one", "stages": [{"name": "one", **(stage or {})}]},
        }
        self.cache.put(made)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    @property
    def awaiting(self) -> float | None:
        return self.value("hortus_rollouts_awaiting_approval")

    @property
    def oldest(self) -> float | None:
        return self.value("hortus_rollouts_oldest_progress_timestamp_seconds")


def test_every_phase_is_counted_and_none_is_left_out() -> None:
    gauges = Gauges()
    gauges.put("a", "Halted")
    gauges.put("b", "Halted")
    gauges.put("c", "Succeeded")
    counts = {phase: gauges.value("hortus_rollouts", phase=phase) for phase in PHASES}
    assert counts == {**dict.fromkeys(PHASES, 0.0), "Halted": 2.0, "Succeeded": 1.0}


def test_a_stage_waits_for_approval_until_it_is_approved() -> None:
    gauges = Gauges()
    before = {"stages": [{"name": "one", "approval": "Before"}]}
    gauges.put("a", "Progressing", policy=before)
    assert gauges.awaiting == 1
    gauges.put("a", "Progressing", policy=before, approved=["one"])
    assert gauges.awaiting == 0


def test_a_stage_that_is_approved_afterwards_waits_once_it_has_soaked() -> None:
    gauges = Gauges()
    terms = {"stages": [{"name": "one", "approval": "After", "minSuccessTime": "1h"}]}
    gauges.put("a", "Progressing", policy=terms)
    assert gauges.awaiting == 0
    settled = {"settledAt": format_time(gauges.clock.now() - 1800)}
    gauges.put("a", "Progressing", policy=terms, stage=settled)
    assert (gauges.awaiting, gauges.oldest) == (0, None)
    gauges.put("a", "Progressing", policy=terms, stage={"settledAt": format_time(gauges.clock.now() - 3700)})
    assert gauges.awaiting == 1


async def test_a_rollout_stands_still_while_no_number_of_it_changes() -> None:
    gauges = Gauges()
    begin = gauges.clock.now()
    gauges.put("a", "Progressing", stage={"running": 1})
    gauges.put("b", "Progressing", stage={"running": 1})
    await gauges.clock.advance(DAY)
    gauges.put("a", "Progressing", stage={"running": 1}, resumes=1)
    gauges.put("b", "Progressing", stage={"succeeded": 1})
    assert gauges.oldest == begin
    gauges.put("a", "Halted", stage={"failed": 1})
    assert gauges.oldest == begin + DAY
    gauges.put("b", "Succeeded", stage={"succeeded": 1})
    assert gauges.oldest is None


def test_a_rollout_that_cannot_be_read_leaves_the_others_counted() -> None:
    gauges = Gauges()
    gauges.put("a", "Halted")
    gauges.cache.put({"metadata": {"name": "odd", "namespace": "fleet", "resourceVersion": "9"}, "spec": 7})
    assert gauges.value("hortus_rollouts", phase="Halted") == 1
