"""Metrics that several controllers of this domain raise, by the names of the Go system."""

from __future__ import annotations

from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge

RequeueType = Literal["intended", "unexpected"]


class RequeueMetrics:
    """Requeues by their reason, and the mode of the cryptography."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requeues = Counter(
            "lifecycle_mgr_requeue_reason_total",
            "Requeues by the step that asked for them.",
            ("requeue_reason", "requeue_type"),
            registry=registry,
        )
        Gauge("lifecycle_mgr_fips_mode", "0: cryptography is not restricted to FIPS 140.", registry=registry).set(0)

    def count(self, reason: str, requeue_type: RequeueType) -> None:
        """Count a requeue that a step asked for, or that followed its failure."""
        self._requeues.labels(reason, requeue_type).inc()
