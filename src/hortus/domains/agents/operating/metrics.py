"""Metrics of agents: those that fail, by their stable reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from hortus.kube.objects import ObjectKey

_LABELS: Final = ("kind", "reason")


class OperatingMetrics:
    """Counts failures; series of single agents there are none, since a fleet has many."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._failures = Counter(
            "hortus_agent_failures_total", "Reconciles of agents that failed, by reason.", _LABELS, registry=registry
        )
        self._failing = Gauge(
            "hortus_agents_failing", "Agents whose last reconcile failed, by reason.", _LABELS, registry=registry
        )
        self._reasons: dict[tuple[str, ObjectKey], str] = {}

    def reconciled(self, key: ObjectKey, kind: str, reason: str) -> None:
        """Note the result of a reconcile; an empty reason is a success."""
        if reason:
            self._failures.labels(kind, reason).inc()
        self._move(key, kind, reason)

    def forget(self, key: ObjectKey, kind: str) -> None:
        """Drop an agent that is gone."""
        self._move(key, kind, "")

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Drop the agents that have become another replica's."""
        for kind, key in [one for one in self._reasons if not holds(one[1])]:
            self.forget(key, kind)

    def _move(self, key: ObjectKey, kind: str, reason: str) -> None:
        before = self._reasons.pop((kind, key), "")
        if reason:
            self._reasons[kind, key] = reason
        if before != reason:
            if before:
                self._failing.labels(kind, before).dec()
            if reason:
                self._failing.labels(kind, reason).inc()
