"""The operator's choices for Flux. Every command that lists flags loads this module, so it loads little."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.engine.flags import Flag, FlagError

FLAGS: Final = (
    Flag(
        "stacks-flux",
        "bool",
        False,
        "Hand the addons of Clusters that ask for it to Flux: annotation fleet.hortus.dev/addons: flux.",
    ),
    Flag("stacks-flux-default", "bool", False, "Hand the addons of Clusters without that annotation to Flux as well."),
)
CHOICE: Final = "fleet.hortus.dev/addons"
"""Annotation of a Cluster: who applies its addons."""
BY_FLUX: Final = "flux"
BY_HORTUS: Final = "hortus"


class FluxSettings(msgspec.Struct, frozen=True):
    """The choices for Flux."""

    offered: bool = False
    default: bool = False

    def wants(self, chosen: str) -> bool:
        """Reports whether Flux applies the addons of a Cluster whose annotation has this value; empty for none."""
        return chosen == BY_FLUX or (self.default and chosen != BY_HORTUS)

    def problem(self, chosen: str) -> str:
        """The reason for which a value of the annotation cannot be followed; empty where it can."""
        if chosen not in ("", BY_FLUX, BY_HORTUS):
            return f"{chosen[:60]!r} is no choice; write {BY_FLUX} or {BY_HORTUS}"
        if chosen == BY_FLUX and not self.offered:
            return (
                f"{BY_FLUX} is not offered: the controllers run without --stacks-flux (in the chart config.stacks-flux)"
            )
        return ""


OFF: Final = FluxSettings()


def from_flags(values: Mapping[str, Any]) -> FluxSettings:
    """The choices that flags make. Raises FlagError."""
    offered, default = values["stacks-flux"], values["stacks-flux-default"]
    if default and not offered:
        raise FlagError("flag --stacks-flux-default needs --stacks-flux")
    if offered and values["hook-bind-address"] == "0":
        raise FlagError("flag --stacks-flux needs the server of --hook-bind-address, from which Flux fetches charts")
    return FluxSettings(offered, default)
