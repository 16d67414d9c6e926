"""Metrics of cluster stacks, counted over the caches at each scrape. Every replica reports all objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hortus.domains.stacks.rows import AddonRows, AddonSubject
from hortus.domains.stacks.types import ClusterAddon, ClusterStackRelease
from hortus.engine import Cache, NotReadable, read
from hortus.render.helm import RenderCounts

READY, WAITING, FAILED = "Ready", "Waiting", "Failed"


def add_metrics(registry: CollectorRegistry, releases: Cache) -> None:
    """Count the ClusterStackReleases by their state."""
    gauge = Gauge(
        "hortus_stack_releases", "ClusterStackReleases by their state, Ready or Waiting.", ("state",), registry=registry
    )
    for state in (READY, WAITING):
        gauge.labels(state).set_function(_counting(releases, ready=state == READY))


class AddonMetrics(Collector):
    """The ClusterAddons by their state, as `hortus problems` has it."""

    def __init__(self, addons: Cache) -> None:
        self._addons = addons

    def collect(self) -> Iterable[Metric]:
        found = Counter(dict.fromkeys((READY, WAITING, FAILED), 0))
        for obj in self._addons.values():
            with suppress(NotReadable):
                found[AddonRows().row(AddonSubject(read(ClusterAddon, obj))).state] += 1
        text = "ClusterAddons by their state: Ready, Waiting, or Failed with a condition of severity Error."
        family = GaugeMetricFamily("hortus_stack_addons", text, labels=("state",))
        for state, count in found.items():
            family.add_metric((state,), count)
        yield family


class RenderMetrics(Collector):
    """The renderings of charts by this process."""

    def __init__(self, counts: RenderCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        text = "Renderings of charts; reused ones come from an equal request."
        found = CounterMetricFamily("hortus_stack_renders", text, labels=("result",))
        found.add_metric(("rendered",), self._counts.rendered)
        found.add_metric(("reused",), self._counts.reused)
        yield found


def _counting(releases: Cache, *, ready: bool) -> Callable[[], float]:
    def count() -> float:
        found = 0
        for obj in releases.values():
            with suppress(NotReadable):
                found += read(ClusterStackRelease, obj).status.ready is ready
        return float(found)

    return count
