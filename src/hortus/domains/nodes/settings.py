"""The operator's choices for roll-outs over nodes. Every command that lists flags loads this module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.engine.flags import Flag, FlagError

FLAGS: Final = (
    Flag(
        "node-rollouts",
        "bool",
        False,
        "Roll OperatingSystemConfigs out over the nodes of the fleet by RolloutPolicies. Needs --rollouts.",
    ),
    Flag("node-rollouts-max-unavailable", "int", 1, "Nodes of a cluster that may be unavailable in a roll-out."),
    Flag(
        "node-rollouts-patience",
        "duration",
        600.0,
        "Time that a node has to apply a configuration and to be healthy; then the cluster's change fails.",
    ),
    Flag("node-rollouts-workers-cnt", "int", 10, "Clusters whose nodes are looked at concurrently."),
)


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The choices."""

    most: int = 1
    """Nodes of a cluster that may be unavailable."""
    patience: float = 600.0
    """Seconds that a node has to be healthy with its configuration."""
    workers: int = 10


def node_settings(values: Mapping[str, Any]) -> NodeSettings:
    """The choices that flags make. Raises FlagError."""
    for name in ("node-rollouts-max-unavailable", "node-rollouts-workers-cnt"):
        if values[name] < 1:
            raise FlagError(f"flag --{name} must be 1 or more")
    if values["node-rollouts-patience"] < 1:
        raise FlagError("flag --node-rollouts-patience must be 1s or more")
    if values["node-rollouts"] and not values["rollouts"]:
        raise FlagError("flag --node-rollouts needs --rollouts: without it no policy holds a configuration back")
    if values["node-rollouts"] and values["watch-namespace"] not in ("", values["fleet-namespace"]):
        raise FlagError("flag --node-rollouts needs an empty --watch-namespace: rollouts follow ClusterProfiles by it")
    return NodeSettings(
        most=values["node-rollouts-max-unavailable"],
        patience=values["node-rollouts-patience"],
        workers=values["node-rollouts-workers-cnt"],
    )
