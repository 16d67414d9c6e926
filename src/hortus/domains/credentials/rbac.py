"""The RBAC rules of this domain, on each side; the roles of the chart come from here."""

from __future__ import annotations

from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.deputies import IMPERSONATES, REVIEWS
from hortus.engine.rbac import Permission

_GROUP, _CLUSTERS = GARDENER_CLUSTERS.group, GARDENER_CLUSTERS.plural

MANAGEMENT: tuple[Permission, ...] = (
    Permission(_GROUP, (_CLUSTERS,), ("list", "watch"), "follows the clusters"),
    Permission(
        _GROUP, (_CLUSTERS,), ("patch",), "takes off what asked for a rotation, and holds what it must clean up"
    ),
    Permission(_GROUP, (f"{_CLUSTERS}/status",), ("patch",), "says how the clusters are"),
    Permission("", ("secrets",), ("get", "list", "watch", "create", "patch", "delete"), "keeps the kubeconfigs"),
)
"""In the namespace of the GardenerClusters, and in every one where they let their Secrets lie."""

WIDE: tuple[Permission, ...] = (IMPERSONATES, REVIEWS)
"""In the whole management cluster, where all namespaces are watched: one watched namespace is trusted."""

GARDEN: tuple[Permission, ...] = (
    Permission(
        "core.gardener.cloud", ("shoots",), ("get", "list", "watch"), "follows the shoots, asks whether one sleeps"
    ),
    Permission("core.gardener.cloud", ("shoots/adminkubeconfig",), ("create",), "asks for kubeconfigs"),
)
"""In the namespace of the Gardener project."""
