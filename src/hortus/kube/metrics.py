"""What each call looked like, for whoever counts: the observer seam and its Prometheus side.

Metric names and labels are client-go's (k8s.io/component-base/metrics/prometheus/restclient), so existing boards work.
"""

from __future__ import annotations

from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram

_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Seconds; those of component-base."""


class RequestObserver(Protocol):
    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        """One attempt is over. `code` is the HTTP status, or `<error>` when no answer came."""


class RequestMetrics:
    """`rest_client_requests_total` and `rest_client_request_duration_seconds` in one registry, for many clients.

    A histogram for each of thousands of clusters would make a scrape take long, so the duration carries the
    host only when asked; the counter always does.
    """

    def __init__(self, registry: CollectorRegistry, *, duration_per_host: bool = False) -> None:
        self._requests = Counter(
            "rest_client_requests_total",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "method", "host"),
            registry=registry,
        )
        self._duration = Histogram(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host.",
            ("verb", "host"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._duration_per_host = duration_per_host
        self._children: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        children = self._children.get((method, host, code))
        if children is None:
            children = self._children[method, host, code] = (
                self._requests.labels(code, method, host),
                self._duration.labels(method, host if self._duration_per_host else ""),
            )
        children[0].inc()
        children[1].observe(seconds)

    def forget(self, host: str) -> None:
        """Drop the series of a cluster that is gone."""
        for method, known, code in [key for key in self._children if key[1] == host]:
            del self._children[method, known, code]
            self._requests.remove(code, method, known)
