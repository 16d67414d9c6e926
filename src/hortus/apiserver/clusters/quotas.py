"""Limits on the content of one logical cluster, from the `spec.quota` of its LogicalCluster."""

from __future__ import annotations

import orjson

from hortus.apiserver.clusters.registry import LogicalClusters
from hortus.apiserver.resources.scope import RequestScope
from hortus.apiserver.resources.writing import is_finalized
from hortus.apiserver.store.backend import Backend
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object

_RESERVE = 0.1
"""Share of the limit that objects in deletion may take in addition, for finalizers and conditions."""


class QuotaGuard:
    """An Admission that refuses growth of a cluster that has reached its quota.

    Deletions, updates that make an object no larger, and those that end it always pass; objects in deletion may grow
    into a reserve, so a full cluster can be used and emptied. Concurrent requests are each measured before any of them
    is stored, so a limit can be exceeded by as many objects.
    """

    def __init__(self, clusters: LogicalClusters, backend: Backend) -> None:
        self._clusters = clusters
        self._backend = backend

    async def admit(
        self, scope: RequestScope, operation: str, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> bool:
        """Raises Forbidden naming the limit; never changes the object."""
        cluster = self._clusters.get(scope.cluster)
        if cluster is None or cluster.quota is None or operation == "DELETE" or obj is None:
            return False
        quota, limit = cluster.quota, cluster.quota.bytes
        if old is not None:
            if limit is None or len(orjson.dumps(obj)) <= len(orjson.dumps(old)):
                return False
            if "deletionTimestamp" in old["metadata"]:
                if is_finalized(obj):
                    return False
                limit += int(limit * _RESERVE)
        used = await self._backend.usage(f"{cluster.name}/")
        limits = (("objects", quota.objects if old is None else None, used.objects), ("bytes", limit, used.bytes))
        for unit, most, present in limits:
            if most is not None and present >= most:
                raise Forbidden(
                    f'exceeded quota: logical cluster "{cluster.name}" holds {present} of {most} {unit}; delete '
                    f"objects or raise spec.quota.{unit} of its LogicalCluster"
                )
        return False

    async def full(self, name: str) -> bool:
        """True when the server itself may not make the cluster larger."""
        cluster = self._clusters.get(name)
        if cluster is None or cluster.quota is None or cluster.quota.bytes is None:
            return False
        return (await self._backend.usage(f"{name}/")).bytes >= cluster.quota.bytes
