"""Metrics of the watcher in the control plane: those of lifecycle-manager and runtime-watcher, and those of Hortus."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

LISTENER = "kcp"
"""Value of the label server_name."""


class WatcherMetrics:
    """Metrics of certificates, events and watchers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._overdue = Gauge(
            "lifecycle_mgr_self_signed_cert_not_renew",
            "1 for a Kyma whose agent's certificate was not renewed in time.",
            ["kyma_name"],
            registry=registry,
        )
        self.closing = Gauge(
            "lifecycle_mgr_gateway_secret_server_cert_close_to_expiry",
            "1 where the gateway's certificate ends soon.",
            registry=registry,
        )
        self.duration = Gauge(
            "watcher_listener_request_duration", "Seconds of the last request.", ["server_name"], registry=registry
        )
        self.inflight = Gauge(
            "watcher_listener_inflight_requests", "Requests in work.", ["server_name"], registry=registry
        )
        self.requests = Counter(
            "watcher_listener_requests_total", "Requests of agents.", ["server_name"], registry=registry
        )
        self.errors = Counter(
            "watcher_listener_request_errors_total",
            "Requests of agents that were refused.",
            ["server_name"],
            registry=registry,
        )
        self.oversized = Counter(
            "watcher_listener_exceeding_size_limit_requests_total",
            "Requests of agents with too long a body.",
            ["server_name"],
            registry=registry,
        )
        self.unverified = Counter(
            "watcher_listener_failed_verification_requests_total",
            "Requests whose certificate is not that of the sender.",
            ["server_name", "request_uri_label"],
            registry=registry,
        )
        self.unmatched = Counter(
            "hortus_watcher_unmatched_events_total",
            "Events of a runtime that no Kyma, or more than one, belongs to.",
            ["reason"],
            registry=registry,
        )
        self.registry = registry

    def not_renewed(self, kyma: str, *, overdue: bool) -> None:
        """Report whether the certificate of a Kyma's agent should have been renewed long ago."""
        if overdue:
            self._overdue.labels(kyma).set(1)
        else:
            self.forget(kyma)

    def forget(self, kyma: str) -> None:
        """Drop the series of a Kyma."""
        if (kyma,) in self._overdue._metrics:
            self._overdue.remove(kyma)

    def watch(self, counts: Callable[[], Mapping[str, int]]) -> None:
        """Report the number of watchers by their standing."""
        self.registry.register(_Standings(counts))


class _Standings(Collector):
    def __init__(self, counts: Callable[[], Mapping[str, int]]) -> None:
        self._counts = counts

    def collect(self) -> list[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "hortus_watcher_clusters", "Clusters by the standing of their watcher.", labels=["state"]
        )
        for state, count in self._counts().items():
            family.add_metric([state], count)
        return [family]
