"""The power that authors of ClusterProfiles have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.engine.powers import Effect, Power
from hortus.kube.objects import Resource

POWERS: Final[Mapping[Resource, Power]] = {
    CLUSTER_PROFILES: Power(
        "A cluster in the lists, with labels by which policies, configurations and rollouts select it. The way into "
        "a cluster stands in the status, which controllers write.",
        "The same.",
        (
            Effect(
                ("delete",),
                CLUSTER_PROFILES.group,
                CLUSTER_PROFILES.plural,
                "a profile under Hortus' own name that no source has ends",
            ),
        ),
    ),
}
