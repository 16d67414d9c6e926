"""The RBAC rules of this domain, and of the recorder that the other domains use."""

from __future__ import annotations

from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.leftovers.types import LEFTOVERS
from hortus.engine.rbac import EVENTS, Permission

_GROUP, _LEFTOVERS = LEFTOVERS.group, LEFTOVERS.plural

FLEET: tuple[Permission, ...] = (
    Permission(_GROUP, (_LEFTOVERS,), ("list", "watch"), "follows the leftovers"),
    Permission(_GROUP, (_LEFTOVERS,), ("create", "patch"), "records what is released"),
    Permission(_GROUP, (_LEFTOVERS,), ("delete",), "removes records that are settled"),
    Permission(_GROUP, (f"{_LEFTOVERS}/status",), ("patch",), "reports what is seen of the items"),
    EVENTS,
)
"""In the namespace of --fleet-namespace."""

MANAGEMENT: tuple[Permission, ...] = (
    Permission(GARDENER_CLUSTERS.group, (GARDENER_CLUSTERS.plural,), ("get", "list", "watch"), "finds the clusters"),
    Permission(RUNTIMES.group, (RUNTIMES.plural,), ("get",), "looks whether a Runtime is left"),
    Permission("", ("secrets",), ("get", "list", "watch"), "enters the clusters, looks whether a kubeconfig is left"),
)
"""In the namespace of the GardenerClusters."""

GARDEN: tuple[Permission, ...] = (
    Permission("core.gardener.cloud", ("shoots",), ("get", "list", "watch"), "looks whether a Shoot is left"),
    Permission("", ("configmaps",), ("delete",), "looks whether a ConfigMap is left, by a dry run"),
)
"""In the namespace of the Gardener project."""
