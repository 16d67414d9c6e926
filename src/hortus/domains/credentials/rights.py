"""The RBAC rules of this domain, on each side; the roles of the chart come from here."""

from __future__ import annotations

from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.rights import Right

_GROUP, _CLUSTERS = GARDENER_CLUSTERS.group, GARDENER_CLUSTERS.plural

MANAGEMENT: tuple[Right, ...] = (
    Right(_GROUP, (_CLUSTERS,), ("list", "watch"), "follows the clusters"),
    Right(_GROUP, (_CLUSTERS,), ("patch",), "takes off what asked for a rotation, and holds what it must clean up"),
    Right(_GROUP, (f"{_CLUSTERS}/status",), ("patch",), "says how the clusters are"),
    Right("", ("secrets",), ("get", "list", "watch", "create", "patch", "delete"), "keeps the kubeconfigs"),
)
"""In the namespace of the GardenerClusters, and in every one where they let their Secrets lie."""

GARDEN: tuple[Right, ...] = (
    Right("core.gardener.cloud", ("shoots",), ("get", "list", "watch"), "follows the shoots, asks whether one sleeps"),
    Right("core.gardener.cloud", ("shoots/adminkubeconfig",), ("create",), "asks for kubeconfigs"),
)
"""In the namespace of the Gardener project."""
