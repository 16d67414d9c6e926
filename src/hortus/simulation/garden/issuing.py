"""Client certificates for workload clusters, from the server that holds their authorities."""

from __future__ import annotations

from hortus.apiserver.clusters import LogicalClusters
from hortus.simulation.garden.kubeconfigs import Issued


class ClusterIssuer:
    def __init__(self, clusters: LogicalClusters) -> None:
        self._clusters = clusters

    async def issue(self, cluster: str, *, username: str, group: str, seconds: int) -> Issued:
        """Raises NotFound where there is no such logical cluster."""
        issued = self._clusters.issue(cluster, username=username, groups=(group,), seconds=seconds)
        return Issued(issued.certificate, issued.key, issued.ca, issued.not_after)
