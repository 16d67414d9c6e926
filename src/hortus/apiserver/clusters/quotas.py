"""Limits of what one logical cluster may hold, from the `spec.quota` of its LogicalCluster."""

from __future__ import annotations

from hortus.apiserver.clusters.registry import LogicalClusters
from hortus.apiserver.resources.scope import Scope
from hortus.apiserver.store.backend import Backend
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object


class QuotaGuard:
    """An Admission that refuses to create objects in a cluster which holds all it may.

    Updates and deletions always pass, so a full cluster can be worked with and emptied. Requests in flight at once are
    each measured before any of them is stored, so a limit can be passed by as many objects.
    """

    def __init__(self, clusters: LogicalClusters, backend: Backend) -> None:
        self._clusters = clusters
        self._backend = backend

    async def admit(
        self, scope: Scope, operation: str, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> bool:
        """Raises Forbidden naming the limit; never changes the object."""
        cluster = self._clusters.get(scope.cluster)
        if operation != "CREATE" or cluster is None or cluster.quota is None:
            return False
        quota, used = cluster.quota, await self._backend.usage(f"{cluster.name}/")
        for unit, limit, present in (("objects", quota.objects, used.objects), ("bytes", quota.bytes, used.bytes)):
            if limit is not None and present >= limit:
                raise Forbidden(
                    f'exceeded quota: logical cluster "{cluster.name}" holds {present} of {limit} {unit}; delete '
                    f"objects or raise spec.quota.{unit} of its LogicalCluster"
                )
        return False
