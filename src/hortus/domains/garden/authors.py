"""The power that authors of Gardenlets have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hortus.domains.garden.kinds.gardenlet import GARDENLETS
from hortus.engine.powers import Power
from hortus.kube.objects import Resource

POWERS: Final[Mapping[Resource, Power]] = {
    GARDENLETS: Power(
        "A chart in the cluster of the Secret that it names, or in Hortus' own, and a Seed with all Shoots on it. "
        "Served in the namespace `garden` alone.",
        "The same as far as the deputy may create `seeds`, get the Secrets that it names, and write what the chart "
        "holds.",
    ),
}
