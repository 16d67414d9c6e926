"""Metrics of Manifests, by the names of the Go system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from hortus.domains.modules.names import State
from hortus.kube.objects import ObjectKey

SLOW: Final = 60.0
"""Seconds from which the duration of a reconcile is shown."""
_STATES: Final = tuple(state for state in State if state is not State.NONE)


class ManifestMetrics:
    """Series of single Manifests; they are dropped when the Manifest is gone or another replica's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._durations = Gauge(
            "reconcile_duration_seconds",
            "Duration of the last reconcile of a Manifest that took a minute or longer.",
            ("manifest_name",),
            registry=registry,
        )
        self._mandatory = Gauge(
            "lifecycle_mgr_mandatory_module_state",
            "1 for the state of a mandatory module, 0 for the others.",
            ("module_name", "kyma_name", "state"),
            registry=registry,
        )
        self._slow: set[ObjectKey] = set()
        self._seen: dict[ObjectKey, tuple[str, str, State]] = {}

    def took(self, key: ObjectKey, seconds: float) -> None:
        """Show how long a slow reconcile took."""
        if seconds >= SLOW:
            self._durations.labels(key.name).set(seconds)
            self._slow.add(key)

    def mandatory(self, key: ObjectKey, module: str, kyma: str, state: State) -> None:
        """Show the state of a mandatory module."""
        if self._seen.get(key) == (module, kyma, state):
            return
        self._seen[key] = module, kyma, state
        for one in _STATES:
            self._mandatory.labels(module, kyma, one.value).set(one is state)

    def clear(self, key: ObjectKey) -> None:
        """Forget a Manifest that is gone."""
        if key in self._slow:
            self._slow.discard(key)
            self._durations.remove(key.name)
        seen = self._seen.pop(key, None)
        if seen is not None:
            for one in _STATES:
                self._mandatory.remove(seen[0], seen[1], one.value)

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Forget the Manifests that have become another replica's."""
        for key in [key for key in (*self._slow, *self._seen) if not holds(key)]:
            self.clear(key)
