"""This domain's metrics, under the Go system's names and labels.

A series for each Runtime, with a message as a label, is what the contract demands; it is cut to a length that scrapes
can bear.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from hortus.domains.clusters import service
from hortus.domains.clusters.types import Runtime
from hortus.kube.objects import ObjectKey

NO_MESSAGE = "No value"
LONGEST_MESSAGE = 200
"""Characters of a message that become a label."""


class RuntimeMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._state = Gauge(
            "infrastructure_manager_im_runtime_state",
            "1 for each Runtime, with its state and the message of its last condition.",
            ("runtimeId", "runtimeName", "shootName", "provider", "state", "message"),
            registry=registry,
        )
        # No prefix, as in the Go system.
        self._stops = Counter(
            "unexpected_stops", "Times that work on a Runtime ended without a way forward.", registry=registry
        )
        self._series: dict[ObjectKey, tuple[str, ...]] = {}

    def set_state(self, key: ObjectKey, runtime: Runtime, shoot: str) -> None:
        """`shoot` is the name of the Shoot that is wanted."""
        conditions = runtime.status.conditions if runtime.status is not None else ()
        message = (conditions[-1].message if conditions else "") or NO_MESSAGE
        series = (
            service.runtime_id(runtime),
            key.name,
            shoot,
            service.provider(runtime),
            service.state_of(runtime),
            " ".join(message.split())[:LONGEST_MESSAGE],
        )
        if self._series.get(key) == series:
            return
        self.clear(key)
        self._series[key] = series
        self._state.labels(*series).set(1)

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Drop the series of Runtimes that have become another replica's, which shows their later states."""
        for key in [key for key in self._series if not holds(key)]:
            self.clear(key)

    def clear(self, key: ObjectKey) -> None:
        """Drop the series of a Runtime that is gone."""
        if series := self._series.pop(key, None):
            self._state.remove(*series)

    def unexpected_stop(self) -> None:
        self._stops.inc()
