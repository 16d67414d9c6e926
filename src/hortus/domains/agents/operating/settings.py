"""The operator's choices for the controllers of agents. Every command that lists flags loads this module."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.domains.agents.settings import etcd_namespaces, operator_version
from hortus.engine.flags import Flag, FlagError

_DRIVERS: Final = ("secret", "configmap")
PAGE_PERIOD: Final = 60.0

OPERATING_FLAGS: Final = (
    Flag("agent-ctrl-workers-cnt", "int", 2, "InstanaAgents, and InstanaAgentRemotes, reconciled at the same time."),
    Flag(
        "agents-helm-driver",
        "string",
        "secret",
        "Storage of the releases of the operator of 2.0.x: secret or configmap; the environment's HELM_DRIVER first.",
    ),
)


class OperatingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The choices."""

    operator_version: str
    helm_driver: str = "secret"
    workers: int = 2
    etcd_namespaces: frozenset[str] = frozenset()
    """Namespaces whose agents on OpenShift get the client certificate of etcd."""
    page_period: float = PAGE_PERIOD
    """Seconds between two looks at the status pages of an agent that has the option."""


def operating_settings(values: Mapping[str, Any], given: Mapping[str, str] = os.environ) -> OperatingSettings:
    """The choices that flags and environment make. Raises FlagError."""
    driver = (given.get("HELM_DRIVER") or values["agents-helm-driver"]).removesuffix("s")
    if driver not in _DRIVERS:
        raise FlagError(f"flag --agents-helm-driver must be secret or configmap, not {driver!r}")
    if values["agent-ctrl-workers-cnt"] < 1:
        raise FlagError("flag --agent-ctrl-workers-cnt must be 1 or more")
    return OperatingSettings(
        operator_version=operator_version(given),
        helm_driver=driver,
        workers=values["agent-ctrl-workers-cnt"],
        etcd_namespaces=etcd_namespaces(values),
    )
