"""The RBAC rules of this domain on the management cluster; the roles of the chart come from here.

Inside the clusters it is the admin of each, by the kubeconfigs that the credentials domain keeps.
"""

from __future__ import annotations

from hortus.domains.access.types import CLUSTER_ACCESSES
from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.deputies import REVIEWS
from hortus.engine.rbac import Permission

_GROUP, _REQUESTS = CLUSTER_ACCESSES.group, CLUSTER_ACCESSES.plural

MANAGEMENT: tuple[Permission, ...] = (
    Permission(_GROUP, (_REQUESTS,), ("list", "watch"), "follows the requests for access"),
    Permission(_GROUP, (_REQUESTS,), ("patch",), "holds a request until what it made in its cluster is gone"),
    Permission(_GROUP, (f"{_REQUESTS}/status",), ("patch",), "says how the requests are"),
    Permission(GARDENER_CLUSTERS.group, (GARDENER_CLUSTERS.plural,), ("get", "list", "watch"), "finds the clusters"),
    Permission(RUNTIMES.group, (RUNTIMES.plural,), ("get",), "finds the cluster of a Runtime that a request names"),
    Permission("", ("secrets",), ("get", "list", "watch", "create", "patch", "delete"), "keeps the scoped kubeconfigs"),
)
"""In the namespaces of the requests and of the GardenerClusters."""
WIDE: tuple[Permission, ...] = (REVIEWS,)
