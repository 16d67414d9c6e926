"""The RBAC rules of this domain; the roles of the chart come from here.

Inside the clusters it reads nodes and ClusterProperties, by the kubeconfigs that lead there.
"""

from __future__ import annotations

from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.engine.rbac import Permission

_GROUP, _PROFILES = CLUSTER_PROFILES.group, CLUSTER_PROFILES.plural

SOURCES: tuple[Permission, ...] = (
    Permission(RUNTIMES.group, (RUNTIMES.plural,), ("list", "watch"), "finds the clusters"),
    Permission(GARDENER_CLUSTERS.group, (GARDENER_CLUSTERS.plural,), ("list", "watch"), "finds the clusters"),
    Permission("", ("secrets",), ("get", "list", "watch"), "finds clusters and connects to them"),
)
"""In the namespace of the sources."""

FLEET: tuple[Permission, ...] = (
    Permission(
        _GROUP, (_PROFILES,), ("list", "watch", "create", "patch", "delete"), "keeps a profile for each cluster"
    ),
    Permission(_GROUP, (f"{_PROFILES}/status",), ("patch",), "reports the state of the clusters"),
    Permission("", ("events",), ("create", "patch"), "reports clusters that become unhealthy, and that recover"),
)
"""In the namespace of the fleet."""
