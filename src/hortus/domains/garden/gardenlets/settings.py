"""The operator's choices for gardenlets. Every command that lists flags loads this module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from hortus.engine.flags import Flag, FlagError

GARDENLETS_FLAG: Final = "gardenlets"
_HTTP: Final = "http://"

FLAGS: Final = (
    Flag(
        GARDENLETS_FLAG,
        "bool",
        False,
        "Deploy a gardenlet for each Gardenlet, and watch it register its Seed. Needs the kind, and the garden.",
    ),
    Flag(
        "gardenlet-self-upgrade",
        "string",
        "",
        "Names of Seeds, separated by commas, whose gardenlet follows its Gardenlet; * for all that have a kubeconfig.",
    ),
    Flag(
        "gardenlet-seed-kubeconfigs",
        "string",
        "",
        "Folder with a kubeconfig NAME.kubeconfig for each of these Seeds.",
    ),
    Flag(
        "gardenlet-garden-address",
        "string",
        "",
        "Address of the garden for gardenlets whose configuration has none; else that of the garden's kubeconfig.",
    ),
    Flag(
        "gardenlet-registry-hosts",
        "string",
        "",
        "Registries of charts that may be local, separated by commas; http:// before one allows plain HTTP.",
    ),
    Flag("gardenlet-charts-by-digest", "bool", False, "Refuse charts that are named by a tag in place of a digest."),
    Flag(
        "gardenlet-chart-keys",
        "string",
        "",
        "Files with public keys in PEM, separated by commas: a chart must have a signature of one, as cosign makes it.",
    ),
    Flag(
        "gardenlet-chart",
        "string",
        "",
        "Chart that Gardenlets labelled operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref=true move to.",
    ),
    Flag(
        "gardenlet-settle-duration",
        "duration",
        60.0,
        "Time for which a Seed must stay well after its gardenlet changed, before the change counts as successful.",
    ),
    Flag(
        "gardenlet-decommission",
        "bool",
        False,
        "Delete the Seed and the gardenlet with a Gardenlet that is deleted; otherwise they stay.",
    ),
    Flag(
        "gardenlet-decommission-deadline",
        "duration",
        3600.0,
        "Time after which such a deletion ends, with a record of what may be left.",
    ),
    Flag("gardenlet-ctrl-workers-cnt", "int", 5, "Gardenlets reconciled at the same time."),
)


class GardenletSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The choices."""

    is_served: bool = False
    upgraded: tuple[str, ...] = ()
    """Names of Seeds whose gardenlet follows its Gardenlet; * for all with a kubeconfig."""
    seeds: Path = Path()
    """Folder with the kubeconfigs of these Seeds."""
    address: str = ""
    """Address of the garden for gardenlets."""
    plain_registries: frozenset[str] = frozenset()
    """Registries that may be spoken to without TLS."""
    local_registries: frozenset[str] = frozenset()
    """Registries that may lie on local addresses, the plain ones included."""
    by_digest: bool = False
    """True where a chart must be named by its digest."""
    keys: tuple[Path, ...] = ()
    """Files with the public keys of which one must have signed a chart; without any, none needs a signature."""
    chart: str = ""
    """Chart that labelled Gardenlets move to."""
    settle: float = 60.0
    """Seconds for which a Seed must stay well."""
    decommission: bool = False
    """True where the Seed and the gardenlet are deleted with their Gardenlet."""
    deadline: float = 3600.0
    """Seconds that this may take."""
    workers: int = 5

    def follows(self, name: str) -> bool:
        """Reports whether the gardenlet of a Seed follows its Gardenlet here."""
        return "*" in self.upgraded or name in self.upgraded


def gardenlet_settings(values: Mapping[str, Any]) -> GardenletSettings:
    """The choices that flags make. Raises FlagError."""
    upgraded, hosts = _words(values["gardenlet-self-upgrade"]), _words(values["gardenlet-registry-hosts"])
    if upgraded and not values["gardenlet-seed-kubeconfigs"]:
        raise FlagError("flag --gardenlet-self-upgrade needs --gardenlet-seed-kubeconfigs, the folder of kubeconfigs")
    if values["gardenlet-ctrl-workers-cnt"] < 1:
        raise FlagError("flag --gardenlet-ctrl-workers-cnt must be 1 or more")
    if values["gardenlet-settle-duration"] < 0:
        raise FlagError("flag --gardenlet-settle-duration must not be negative")
    return GardenletSettings(
        is_served=values[GARDENLETS_FLAG],
        upgraded=upgraded,
        seeds=Path(values["gardenlet-seed-kubeconfigs"]),
        address=values["gardenlet-garden-address"],
        plain_registries=frozenset(one.removeprefix(_HTTP) for one in hosts if one.startswith(_HTTP)),
        local_registries=frozenset(one.removeprefix(_HTTP) for one in hosts),
        by_digest=values["gardenlet-charts-by-digest"],
        keys=tuple(map(Path, _words(values["gardenlet-chart-keys"]))),
        chart=values["gardenlet-chart"].removeprefix("oci://"),
        settle=values["gardenlet-settle-duration"],
        decommission=values["gardenlet-decommission"],
        deadline=values["gardenlet-decommission-deadline"],
        workers=values["gardenlet-ctrl-workers-cnt"],
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
