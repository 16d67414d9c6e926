"""This domain's metrics. They name no request, but count them by state and show when the first kubeconfig ends."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from hortus.kube.objects import ObjectKey


class AccessMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Gauge(
            "hortus_access_requests",
            "ClusterAccesses by the reason of their condition.",
            ("reason",),
            registry=registry,
        )
        self._expiry = Gauge(
            "hortus_access_earliest_expiry_seconds",
            "When the first of all kubeconfigs ends, in seconds since the epoch; 0 without any.",
            registry=registry,
        )
        self._issued = Counter("hortus_access_issued_total", "Kubeconfigs that were issued.", registry=registry)
        self._detached = Counter(
            "hortus_access_detached_total",
            "ClusterAccesses that were released without their cluster, where objects may be left.",
            registry=registry,
        )
        self._reasons: dict[ObjectKey, str] = {}
        self._expiries: dict[ObjectKey, float] = {}
        self._expiry.set_function(lambda: min(self._expiries.values(), default=0.0))

    def see(self, key: ObjectKey, reason: str, expires: float | None) -> None:
        """Record the state of a request, and the time at which its kubeconfig ends; None without one."""
        before = self._reasons.get(key)
        if before != reason:
            if before is not None:
                self._requests.labels(before).dec()
            self._requests.labels(reason).inc()
            self._reasons[key] = reason
        if expires is not None:
            self._expiries[key] = expires
        else:
            self._expiries.pop(key, None)

    def issued(self) -> None:
        self._issued.inc()

    def detached(self) -> None:
        self._detached.inc()

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Forget requests that have become another replica's."""
        for key in [key for key in self._reasons if not holds(key)]:
            self.clear(key)

    def clear(self, key: ObjectKey) -> None:
        """Forget a request that is gone."""
        self._expiries.pop(key, None)
        if (reason := self._reasons.pop(key, None)) is not None:
            self._requests.labels(reason).dec()
