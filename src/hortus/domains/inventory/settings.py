"""The operator's choices for this domain. Every command that lists flags loads this module, so it loads little."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

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


class LabelFilter:
    """The labels of sources that profiles take over: keys, or prefixes that end in a star."""

    def __init__(self, text: str) -> None:
        """`text` as of the flag, separated by commas. Raises ValueError."""
        words = [word.strip() for word in text.split(",") if word.strip()]
        for word in words:
            if "*" in word[:-1] or word == "*":
                raise ValueError(
                    f"{word!r} must be the key of a label, or a prefix of keys that ends in *, like a.org/*"
                )
        self._keys = frozenset(word for word in words if not word.endswith("*"))
        self._prefixes = tuple(word[:-1] for word in words if word.endswith("*"))

    def __call__(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {
            name: value
            for name, value in labels.items()
            if name in self._keys or name.startswith(self._prefixes or ("\n",))
        }


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
