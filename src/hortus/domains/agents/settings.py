"""The operator's choices for agents. Every command that lists flags loads this module, so it loads little."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.engine.flags import Flag, FlagError

_MINUTE: Final = 60.0
_DEVELOPMENT: Final = "v0.0.1-dev"

FLAGS: Final = (
    Flag(
        "agents",
        "bool",
        False,
        "Serve InstanaAgents and InstanaAgentRemotes, with --inventory AgentConfigurations too. Needs their CRDs.",
    ),
    Flag("agents-resync", "duration", 10 * _MINUTE, "Time between two repairs of drift in a cluster of the fleet."),
    Flag(
        "agents-detach-after",
        "duration",
        60 * _MINUTE,
        "Time after which an agent is released whose cluster cannot be emptied.",
    ),
    Flag(
        "agents-etcd-namespaces",
        "string",
        "",
        "Namespaces, by commas, whose agents on OpenShift get the client certificate of etcd, with its key: a reader "
        "Secrets there can read and change all of the cluster.",
    ),
    Flag("agent-placement-ctrl-workers-cnt", "int", 20, "Clusters of the fleet that get their agent at the same time."),
)


class FleetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The choices for AgentConfigurations."""

    namespace: str
    resync: float
    """Seconds."""
    detach_after: float
    """Seconds."""
    report_period: float = 5.0
    """Seconds between two reports of a cluster's numbers while its pods are replaced: a node each would be a write."""
    fleet_period: float = 1.0
    """Seconds between two reports of all clusters: they change in bursts."""
    workers: int = 2
    placement_workers: int = 20
    operator_version: str = _DEVELOPMENT
    etcd_namespaces: frozenset[str] = frozenset()
    """Namespaces of agents, in clusters with OpenShift, that get the client certificate of etcd."""


def operator_version(given: Mapping[str, str] = os.environ) -> str:
    """The version in labels of objects: that of the environment, as with the Go operator."""
    return given.get("OPERATOR_VERSION") or _DEVELOPMENT


def etcd_namespaces(values: Mapping[str, Any]) -> frozenset[str]:
    """The namespaces that may have the client certificate of etcd."""
    return frozenset(filter(None, (word.strip() for word in values["agents-etcd-namespaces"].split(","))))


def fleet_settings(values: Mapping[str, Any]) -> FleetSettings:
    """The choices that flags make. Raises FlagError."""
    if values["agent-placement-ctrl-workers-cnt"] < 1:
        raise FlagError("flag --agent-placement-ctrl-workers-cnt must be 1 or more")
    for name in ("agents-resync", "agents-detach-after"):
        if values[name] < 1:
            raise FlagError(f"flag --{name} must be 1s or more")
    return FleetSettings(
        namespace=values["fleet-namespace"],
        resync=values["agents-resync"],
        detach_after=values["agents-detach-after"],
        placement_workers=values["agent-placement-ctrl-workers-cnt"],
        operator_version=operator_version(),
        etcd_namespaces=etcd_namespaces(values),
    )
