"""The operator's choices for this domain, under the flag names of the Go system.

Contract: docs/credentials.md. Flags that the Go system does not know are at the end, and off or harmless by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hortus.engine.flags import Flag, FlagError
from hortus.engine.kubeconfigs import RotationPolicy

LIFETIME = 24 * 3600.0
"""Seconds asked for each kubeconfig, unless a flag says otherwise."""
RATIO_MODIFIER = 0.95
"""Share of the rotation period after which a kubeconfig is replaced."""
DEFAULT_SPREAD = 0.05
"""Largest share taken off the wait: 41 min of 13 h 40 min."""

FLAGS: tuple[Flag, ...] = (
    Flag(
        "minimal-rotation-time",
        "float",
        0.6,
        "Share of a kubeconfig's lifetime after which it is replaced.",
        reloadable=True,
    ),
    Flag(
        "kubeconfig-expiration-time",
        "duration",
        LIFETIME,
        "Lifetime asked for each kubeconfig.",
        reloadable=True,
    ),
    Flag(
        # Misspelt in the Go system; its Deployments pass it this way.
        "gardener-ctrl-reconcilation-timeout",
        "duration",
        60.0,
        "Time limit for one reconcile.",
    ),
    Flag("gardener-cluster-ctrl-workers-cnt", "int", 25, "GardenerClusters reconciled at the same time."),
    Flag(
        "rotation-spread",
        "float",
        DEFAULT_SPREAD,
        "Largest share by which a cluster is rotated before its time.",
        reloadable=True,
    ),
    Flag("prove-kubeconfigs", "bool", True, "Try each new kubeconfig against its cluster before it is stored."),
)


class Settings(msgspec.Struct, frozen=True):
    """FLAGS and what is read of the flags that all domains share, as values. Times in seconds."""

    project: str
    policy: RotationPolicy
    reconcile_timeout: float
    workers: int
    namespace: str
    prove: bool
    cluster_timeout: float
    plain_http: bool

    @property
    def garden_namespace(self) -> str:
        return f"garden-{self.project}"

    @classmethod
    def from_flags(cls, values: Mapping[str, Any]) -> Settings:
        """The settings by the values of flags. Raises FlagError naming the flag whose value cannot be used."""
        ratio, spread = values["minimal-rotation-time"], values["rotation-spread"]
        _require("minimal-rotation-time", ratio, 0.0 < ratio <= 1.0, "more than 0 and at most 1")
        _require("rotation-spread", spread, 0.0 <= spread <= 0.5, "between 0 and 0.5")
        for name in _POSITIVE:
            _require(name, values[name], values[name] > 0, "more than 0")
        return cls(
            project=values["gardener-project-name"],
            policy=contract_policy(values["kubeconfig-expiration-time"], ratio, spread=spread),
            reconcile_timeout=values["gardener-ctrl-reconcilation-timeout"],
            workers=values["gardener-cluster-ctrl-workers-cnt"],
            namespace=values["watch-namespace"],
            prove=values["prove-kubeconfigs"],
            cluster_timeout=values["cluster-request-timeout"],
            plain_http=values["allow-plain-http"],
        )


def contract_policy(lifetime: float = LIFETIME, ratio: float = 0.6, *, spread: float = 0.0) -> RotationPolicy:
    """Rotation as the contract has it: the period is `ratio` of the lifetime, cut to whole minutes, and a kubeconfig is
    replaced once 0.95 of the period have gone by. With the defaults, that is after 13 h 40 min 48 s of 24 h."""
    return RotationPolicy(lifetime=lifetime, share=ratio, whole_minutes=True, margin=RATIO_MODIFIER, spread=spread)


_POSITIVE = (
    "kubeconfig-expiration-time",
    "gardener-ctrl-reconcilation-timeout",
    "gardener-cluster-ctrl-workers-cnt",
)


def _require(flag: str, value: object, holds: bool, rule: str) -> None:
    if not holds:
        raise FlagError(f"invalid value {value} for flag --{flag}: must be {rule}")
