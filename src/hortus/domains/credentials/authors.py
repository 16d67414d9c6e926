"""The power that authors of GardenerClusters have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.powers import IN_INVENTORY, Power
from hortus.kube.objects import Resource

POWERS: Final[Mapping[Resource, Power]] = {
    GARDENER_CLUSTERS: Power(
        "The administrator's kubeconfig of any Shoot of the garden's project, in a Secret of any namespace.",
        "The same where the deputy may create `shoots/adminkubeconfig` of that Shoot; a Secret of another namespace "
        "where it may write Secrets there.",
        IN_INVENTORY,
    ),
}
