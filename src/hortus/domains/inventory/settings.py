"""The operator's choices for this domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.domains.inventory.service import LabelFilter
from hortus.engine.flags import Flag, FlagError
from hortus.kube.naming import dns_label

DEFAULT_LABELS: Final = "kyma-project.io/broker-plan-name,kyma-project.io/platform-region"
FLAGS: tuple[Flag, ...] = (
    Flag("inventory", "bool", False, "Keep a ClusterProfile for each cluster. Needs their CRD."),
    Flag("fleet-namespace", "string", "fleet", "Namespace of ClusterProfiles, policies and rollouts."),
    Flag(
        "inventory-labels",
        "string",
        DEFAULT_LABELS,
        "Labels of Runtimes, GardenerClusters and Secrets that ClusterProfiles take over, separated by commas; a.org/* "
        "for all of a prefix.",
    ),
    Flag("inventory-ctrl-workers-cnt", "int", 10, "ClusterProfiles reconciled at the same time."),
)


class Settings(msgspec.Struct, frozen=True):
    """FLAGS as values."""

    namespace: str
    labels: LabelFilter
    workers: int


def from_flags(values: Mapping[str, Any]) -> Settings:
    """Raises FlagError naming the flag whose value cannot be used."""
    namespace = values["fleet-namespace"]
    if problems := dns_label(namespace):
        raise FlagError(f"invalid value {namespace!r} for flag --fleet-namespace: {'; '.join(problems)}")
    try:
        labels = LabelFilter(values["inventory-labels"])
    except ValueError as error:
        raise FlagError(f"invalid value for flag --inventory-labels: {error}") from None
    workers = values["inventory-ctrl-workers-cnt"]
    if workers <= 0:
        raise FlagError(f"invalid value {workers} for flag --inventory-ctrl-workers-cnt: must be more than 0")
    return Settings(namespace, labels, workers)
