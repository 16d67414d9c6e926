"""This domain's metrics. None names a cluster: profiles are counted by the status of each condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Gauge

from hortus.kube.objects import ObjectKey


class InventoryMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._profiles = Gauge(
            "hortus_inventory_clusters",
            "Clusters of the inventory by condition and its status.",
            ("condition", "status"),
            registry=registry,
        )
        self._known: dict[ObjectKey, Mapping[str, str]] = {}

    def see(self, key: ObjectKey, conditions: Mapping[str, str]) -> None:
        """Count a profile by its conditions: their status by type, empty for one that is not decided."""
        if self._known.get(key) == conditions:
            return
        self.clear(key)
        self._known[key] = conditions
        for kind, status in conditions.items():
            self._profiles.labels(kind, status or "Unknown").inc()

    def clear(self, key: ObjectKey) -> None:
        """Forget a profile that is gone."""
        for kind, status in self._known.pop(key, {}).items():
            self._profiles.labels(kind, status or "Unknown").dec()

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Forget profiles that have become another replica's."""
        for key in [key for key in self._known if not holds(key)]:
            self.clear(key)
