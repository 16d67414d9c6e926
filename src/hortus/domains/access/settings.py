"""The operator's choices for this domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.domains.access.policy import AccessPolicy
from hortus.domains.access.types import LEAST_SECONDS
from hortus.engine.flags import Flag, FlagError

FLAGS: tuple[Flag, ...] = (
    Flag(
        "cluster-access", "bool", False, "Serve ClusterAccesses: kubeconfigs with limited permissions. Needs their CRD."
    ),
    Flag("cluster-access-ctrl-workers-cnt", "int", 10, "ClusterAccesses reconciled at the same time."),
    Flag(
        "access-allow",
        "string",
        "",
        "Powers that requests may ask for, separated by commas; namespace/power for those of one namespace.",
    ),
    Flag("access-max-lifetime", "duration", 24 * 3600.0, "Longest life of a token, whatever a request asks for."),
    Flag(
        "access-detach-after",
        "duration",
        900.0,
        "How long the deletion of a request waits for a cluster that cannot be reached.",
    ),
)

SHARED: Final = ("watch-namespace", "cluster-request-timeout")
"""Flags of all domains that are read here too."""


class Settings(msgspec.Struct, frozen=True):
    """FLAGS as values. Times in seconds."""

    policy: AccessPolicy
    workers: int
    namespace: str
    detach_after: float
    cluster_timeout: float


def from_flags(values: Mapping[str, Any]) -> Settings:
    """The settings by the values of flags. Raises FlagError naming the flag whose value cannot be used."""
    longest = values["access-max-lifetime"]
    if longest < LEAST_SECONDS:
        raise FlagError(
            f"invalid value {longest:g}s for flag --access-max-lifetime: clusters issue none below {LEAST_SECONDS} s"
        )
    for name in ("cluster-access-ctrl-workers-cnt", "access-detach-after"):
        if values[name] <= 0:
            raise FlagError(f"invalid value {values[name]} for flag --{name}: must be more than 0")
    try:
        policy = AccessPolicy.parse(values["access-allow"], longest=longest)
    except ValueError as error:
        raise FlagError(f"invalid value for flag --access-allow: {error}") from None
    return Settings(
        policy=policy,
        workers=values["cluster-access-ctrl-workers-cnt"],
        namespace=values["watch-namespace"],
        detach_after=values["access-detach-after"],
        cluster_timeout=values["cluster-request-timeout"],
    )
