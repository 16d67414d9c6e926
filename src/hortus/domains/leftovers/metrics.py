"""This domain's metrics, counted from the cache: every replica shows the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from hortus.engine import Cache, NotReadable, read
from hortus.engine.leftovers.types import Leftover, LeftoverPhase
from hortus.kube.objects import Object

_PHASES = (LeftoverPhase.OPEN, LeftoverPhase.ACKNOWLEDGED, LeftoverPhase.SETTLED)


class LeftoverMetrics(Collector):
    """The number of Leftovers by phase."""

    def __init__(self, registry: CollectorRegistry, leftovers: Cache) -> None:
        self._leftovers = leftovers
        registry.register(self)

    def describe(self) -> Iterator[Metric]:
        yield _family(())

    def collect(self) -> Iterator[Metric]:
        yield _family(self._leftovers.values())


def _family(leftovers: Iterable[Object]) -> GaugeMetricFamily:
    family = GaugeMetricFamily("hortus_leftovers", "Leftovers by state.", labels=("state",))
    counted = Counter(map(_phase, leftovers))
    for phase in _PHASES:
        family.add_metric((phase,), float(counted[phase]))
    return family


def _phase(leftover: Object) -> str:
    """The phase; one that cannot be read, or was not looked at yet, is open."""
    try:
        return read(Leftover, leftover).status.phase or LeftoverPhase.OPEN
    except NotReadable:
        return LeftoverPhase.OPEN
