"""Metrics of calls: the observer interface and its Prometheus implementation.

Metric names and labels are client-go's (k8s.io/component-base/metrics/prometheus/restclient), so existing boards work.
Counting is on the path of every call, so it is a few list operations; the metric families are made at the scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Seconds; those of component-base."""
_LABELS = (*map(str, _BUCKETS), "+Inf")


class RequestObserver(Protocol):
    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        """One attempt is over. `code` is the HTTP status, or `<error>` when no answer came."""


class _Durations:
    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * len(_LABELS)
        self.total = 0.0


class RequestMetrics:
    """`rest_client_requests_total` and `rest_client_request_duration_seconds` in one registry, for many clients.

    A histogram for each of thousands of clusters would make a scrape take long, so the duration carries the
    host only when asked; the counter always does.
    """

    def __init__(self, registry: CollectorRegistry, *, duration_per_host: bool = False) -> None:
        self._duration_per_host = duration_per_host
        self._counts: dict[tuple[str, str, str], int] = {}
        self._durations: dict[tuple[str, str], _Durations] = {}
        registry.register(self)

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        series = (code, method, host)
        self._counts[series] = self._counts.get(series, 0) + 1
        place = (method, host if self._duration_per_host else "")
        durations = self._durations.get(place)
        if durations is None:
            durations = self._durations[place] = _Durations()
        durations.buckets[bisect_left(_BUCKETS, seconds)] += 1
        durations.total += seconds

    def forget(self, host: str) -> None:
        """Drops the series of a cluster that was removed."""
        for series in [series for series in self._counts if series[2] == host]:
            del self._counts[series]
        for place in [place for place in self._durations if place[1] == host]:
            del self._durations[place]

    def collect(self) -> Iterator[Metric]:
        """Yields the metric families to the registry."""
        requests = CounterMetricFamily(
            "rest_client_requests",
            "Calls to API servers; code is <error> where no answer came.",
            labels=("code", "method", "host"),
        )
        for series, count in list(self._counts.items()):
            requests.add_metric(series, count)
        yield requests
        latency = HistogramMetricFamily(
            "rest_client_request_duration_seconds",
            "Seconds from a call to the head of its answer.",
            labels=("verb", "host"),
        )
        for place, durations in list(self._durations.items()):
            buckets = list(zip(_LABELS, map(float, accumulate(durations.buckets)), strict=True))
            latency.add_metric(place, buckets, durations.total)
        yield latency
