"""Clusters of cluster stacks as members of the inventory: a label on the Secrets with their kubeconfigs.

The inventory takes up each Secret with that label. It owns the label alone, by a field manager of its own, and leaves
the label of Clusters of other classes to people.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.stacks.addons.workload import clusters_of
from hortus.domains.stacks.capi import read_cluster
from hortus.domains.stacks.names import parse_either
from hortus.engine import Cache, metadata_of
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import ObjectKey

NAME: Final = "clusterstack-inventory"
"""The controller's name in metrics and logs."""
MEMBER: Final = "fleet.hortus.dev/kubeconfig"
"""Label of a Secret that leads to a member of the inventory; docs/inventory.md."""
CLUSTER: Final = "fleet.hortus.dev/cluster"
"""Label with the member's name."""
_MANAGER: Final = "hortus-stacks-inventory"


class MembershipLabels:
    """Reconciles one Secret with a kubeconfig at a time."""

    def __init__(self, client: Client, *, secrets: Cache, clusters: Cache) -> None:
        self._client = client
        self._secrets = secrets
        self._clusters = clusters

    async def reconcile(self, key: ObjectKey) -> None:
        secret = self._secrets.get(key)
        if secret is None or MEMBER in metadata_of(secret).labels:
            return
        for cluster_key in clusters_of(secret):
            found = self._clusters.get(cluster_key)
            if found is None or parse_either(read_cluster(found).class_name) is None:
                continue
            labels = {MEMBER: "true", CLUSTER: cluster_key.name}
            try:
                await self._client.patch(
                    SECRETS, key.name, {"metadata": {"labels": labels}}, key.namespace, field_manager=_MANAGER
                )
            except NotFound:
                return
