"""This domain's metrics, under the Go system's names and labels (docs/credentials.md).

One series a cluster is what the contract demands; both gauges drop a cluster's old series before a new one is set.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge

from hortus.domains.credentials.types import GardenerCluster, Label
from hortus.engine.kubeconfigs import RotationPolicy
from hortus.kube.objects import ObjectKey

_PREFIX = "infrastructure_manager_im_"


class CredentialMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._state = Gauge(
            f"{_PREFIX}gardener_clusters_state",
            "1 for each GardenerCluster, with its state and the reason of its condition.",
            ("runtimeId", "shootName", "state", "reason"),
            registry=registry,
        )
        self._expiration = Gauge(
            f"{_PREFIX}kubeconfig_expiration",
            "When the kubeconfig of a cluster ends, in seconds since the epoch.",
            ("runtimeId", "shootName", "expires", "rotationDuration", "expirationDuration"),
            registry=registry,
        )
        self._key_of: dict[str, ObjectKey] = {}
        """The GardenerCluster that each name was measured for last."""
        self._state_of: dict[str, tuple[str, str, str, str]] = {}
        self._expiration_of: dict[str, tuple[str, str, str, str, str]] = {}
        self._computed_for: dict[str, tuple[tuple[str, str], float, RotationPolicy]] = {}
        """The values that a cluster's series of the expiration was computed from."""

    def set_state(self, cluster: GardenerCluster, state: str, reason: str) -> None:
        name = cluster.metadata.name
        self._key_of[name] = cluster.key
        series = (*_identity(cluster), state, reason)
        if self._state_of.get(name) == series:
            return
        self._drop_state(name)
        self._state_of[name] = series
        self._state.labels(*series).set(1)

    def set_expiration(self, cluster: GardenerCluster, last_sync: float, policy: RotationPolicy) -> None:
        """Set the end of its kubeconfig: last-sync plus the lifetime that the rotation period stands for."""
        name, values = cluster.metadata.name, (_identity(cluster), last_sync, policy)
        if self._computed_for.get(name) == values:
            return
        period = policy.period(policy.lifetime)
        lifetime = period / policy.share
        expires = last_sync + lifetime
        self._drop_expiration(name)
        series = (*_identity(cluster), go_number(expires), go_number(period), go_number(lifetime))
        self._computed_for[name], self._expiration_of[name] = values, series
        self._expiration.labels(*series).set(expires)

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Drop the series of GardenerClusters that have become another replica's, which shows their later states."""
        for name in [name for name, key in self._key_of.items() if not holds(key)]:
            self.clear(name)

    def clear(self, name: str) -> None:
        """Drop every series of the GardenerCluster `name`, which is gone or another replica's."""
        self._key_of.pop(name, None)
        self._drop_state(name)
        self._drop_expiration(name)

    def _drop_state(self, name: str) -> None:
        if series := self._state_of.pop(name, None):
            self._state.remove(*series)

    def _drop_expiration(self, name: str) -> None:
        self._computed_for.pop(name, None)
        if series := self._expiration_of.pop(name, None):
            self._expiration.remove(*series)


def go_number(value: float) -> str:
    """A number as the Go system writes it into a label: plain digits, as many as are needed."""
    return str(int(value)) if value == int(value) else f"{value:.10g}"


def _identity(cluster: GardenerCluster) -> tuple[str, str]:
    labels = cluster.metadata.labels
    return labels.get(Label.RUNTIME_ID) or cluster.metadata.name, labels.get(Label.SHOOT_NAME, "")


__all__ = ["CredentialMetrics", "go_number"]
