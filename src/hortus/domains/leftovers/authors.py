"""The power that authors of Leftovers have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hortus.engine.leftovers.types import LEFTOVERS
from hortus.engine.powers import Power
from hortus.kube.objects import Resource

POWERS: Final[Mapping[Resource, Power]] = {
    LEFTOVERS: Power(
        "Whether named objects exist, in any namespace, in the garden and in members; nothing is changed or deleted.",
        "The same: grant it to people who may know that.",
    ),
}
