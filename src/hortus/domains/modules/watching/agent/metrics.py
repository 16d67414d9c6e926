"""Metrics of the agent: those of Kyma's runtime-watcher by their names, and those of its buffer."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from hortus.domains.modules.watching.agent.buffer import EventBuffer

FAILED_REQUEST: Final = "failed-request"
INVALID_SUBRESOURCE: Final = "invalid-subresource"
REQUEST_SETUP: Final = "request-setup"


class AgentMetrics:
    """The metrics of one agent, in `registry`."""

    def __init__(self, buffer: EventBuffer, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.duration = Gauge(
            "watcher_request_duration", "Seconds that the last admission request took.", registry=registry
        )
        Gauge("watcher_fips_mode", "0: cryptography is not restricted to FIPS 140.", registry=registry).set(0)
        self.reviews = Counter("watcher_admission_request_total", "Admission requests.", registry=registry)
        self.review_errors = Counter(
            "watcher_admission_request_error_total", "Admission requests that could not be decided.", registry=registry
        )
        self.requests = Counter("watcher_kcp_requests_total", "Requests to the control plane.", registry=registry)
        self.failures = Counter(
            "watcher_failed_kcp_total",
            "Events that the control plane did not accept, by reason.",
            ["error_reason"],
            registry=registry,
        )
        Gauge("hortus_watcher_buffered_events", "Events that wait for delivery.", registry=registry).set_function(
            lambda: len(buffer)
        )
        Gauge(
            "hortus_watcher_dropped_events",
            "Events refused since the start because the buffer was full.",
            registry=registry,
        ).set_function(lambda: buffer.dropped)
        Gauge(
            "hortus_watcher_buffer_persistent", "1 where events outlive the process.", registry=registry
        ).set_function(lambda: int(buffer.persistent))
