"""The metrics of a pool. Labels name states, never clusters: thousands of series would make a scrape slow."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hortus.engine.remote.budget import Budget
from hortus.engine.remote.states import Phase
from hortus.kube import RequestObserver

ANY_HOST = "remote"
"""The host label of calls to remote clusters in `rest_client_requests_total`."""


class Anonymous:
    """Passes calls on to an observer under one host for all clusters."""

    def __init__(self, observer: RequestObserver) -> None:
        self._observer = observer

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self._observer.answered(method, ANY_HOST, code, seconds)


class RemoteMetrics(Collector):
    """Families of one pool, made when scraped."""

    def __init__(self, budget: Budget, registry: CollectorRegistry | None) -> None:
        self._budget = budget
        self.phases = dict.fromkeys(Phase, 0)
        self.opened = 0
        self.rotations = 0
        if registry is not None:
            registry.register(self)

    def describe(self) -> Iterable[Metric]:
        return self.collect()

    def collect(self) -> Iterable[Metric]:
        clusters = GaugeMetricFamily("hortus_remote_clusters", "Remote clusters by state.", labels=("state",))
        for phase, count in self.phases.items():
            clusters.add_metric((phase.value,), count)
        yield clusters
        for name, text, value in (
            ("hortus_remote_sockets", "Open connections to remote clusters.", self._budget.held),
            ("hortus_remote_waiting", "Calls and watches that wait for a connection.", self._budget.waiting),
        ):
            yield GaugeMetricFamily(name, text, value=value)
        for name, text, value in (
            ("hortus_remote_breaker_opened", "How often a cluster was left alone.", self.opened),
            ("hortus_remote_rotations", "Credentials replaced while connected.", self.rotations),
            ("hortus_remote_evictions", "Unused connections closed to make room.", self._budget.evicted),
        ):
            yield CounterMetricFamily(name, text, value=value)
