"""The power that authors of ClusterAccesses have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hortus.domains.access.types import CLUSTER_ACCESSES
from hortus.engine.powers import Power
from hortus.kube.objects import Resource

POWERS: Final[Mapping[Resource, Power]] = {
    CLUSTER_ACCESSES: Power(
        "A ServiceAccount with roles and tokens inside the cluster of a GardenerCluster or Runtime, within "
        "--access-allow.",
        "The same where the deputy has the verb `access` on that GardenerCluster.",
    ),
}
