"""Limits of what one logical cluster may hold, from the `spec.quota` of its LogicalCluster."""

from __future__ import annotations

import orjson

from hortus.apiserver.clusters.registry import LogicalClusters
from hortus.apiserver.resources.scope import Scope
from hortus.apiserver.store.backend import Backend
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object


class QuotaGuard:
    """An Admission that refuses what would grow in a cluster which holds all it may.

    Deletions and updates that make an object no larger always pass, and all of an object that is being deleted, so a
    full cluster can be worked with and emptied. Requests in flight at once are each measured before any of them is
    stored, so a limit can be passed by as many objects.
    """

    def __init__(self, clusters: LogicalClusters, backend: Backend) -> None:
        self._clusters = clusters
        self._backend = backend

    async def admit(
        self, scope: Scope, operation: str, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> bool:
        """Raises Forbidden naming the limit; never changes the object."""
        cluster = self._clusters.get(scope.cluster)
        if cluster is None or cluster.quota is None or operation == "DELETE":
            return False
        quota, creates = cluster.quota, operation == "CREATE"
        if not creates and (quota.bytes is None or not _grows(obj, old)):
            return False
        used = await self._backend.usage(f"{cluster.name}/")
        limits = (("objects", quota.objects if creates else None, used.objects), ("bytes", quota.bytes, used.bytes))
        for unit, limit, present in limits:
            if limit is not None and present >= limit:
                raise Forbidden(
                    f'exceeded quota: logical cluster "{cluster.name}" holds {present} of {limit} {unit}; delete '
                    f"objects or raise spec.quota.{unit} of its LogicalCluster"
                )
        return False


def _grows(obj: Object | None, old: Object | None) -> bool:
    if obj is None or "deletionTimestamp" in obj.get("metadata", {}):
        return False
    return len(orjson.dumps(obj)) > len(orjson.dumps(old))
