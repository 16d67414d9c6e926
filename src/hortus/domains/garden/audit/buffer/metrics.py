"""Metrics of the buffer. A label names a sink, of which there are a few; none names an event or a user."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge


class BufferMetrics:
    """The metrics of one receiver, in `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.received = Counter("hortus_audit_received_events_total", "Events acknowledged.", registry=registry)
        self.received_bytes = Counter("hortus_audit_received_bytes_total", "Bytes of bodies read.", registry=registry)
        self.turned_away = Counter(
            "hortus_audit_refused_requests_total",
            "Requests not acknowledged, by reason.",
            ["reason"],
            registry=registry,
        )
        self.delivered = Counter(
            "hortus_audit_delivered_events_total", "Events that a sink confirmed.", ["sink"], registry=registry
        )
        self.failures = Counter(
            "hortus_audit_delivery_failures_total", "Attempts that a sink did not confirm.", ["sink"], registry=registry
        )
        self.refused = Counter(
            "hortus_audit_refused_events_total", "Events set aside: the sink refused them.", ["sink"], registry=registry
        )
        self.damaged = Counter(
            "hortus_audit_damaged_places_total",
            "Places of the spool that could not be read.",
            ["sink"],
            registry=registry,
        )

    def follow(self, name: str, text: str, read: Callable[[], float]) -> None:
        """A gauge that is read at each scrape."""
        Gauge(name, text, registry=self.registry).set_function(read)

    def follow_sink(self, sink: str, waiting: Callable[[], float]) -> None:
        """The events that `sink` has not confirmed."""
        if self._waiting is None:
            self._waiting = Gauge(
                "hortus_audit_waiting_events", "Events not confirmed yet.", ["sink"], registry=self.registry
            )
        self._waiting.labels(sink).set_function(waiting)

    _waiting: Gauge | None = None
