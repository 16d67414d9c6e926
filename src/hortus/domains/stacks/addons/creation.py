"""The controller clusteraddoncreate: a ClusterAddon for each Cluster with a topology.

It watches Clusters and ClusterAddons. It never changes a ClusterAddon, nor deletes one: it is deleted with its Cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from hortus.domains.stacks.capi import CapiCluster, read_cluster
from hortus.domains.stacks.types import CLUSTER_ADDONS
from hortus.engine import Cache
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists
from hortus.kube.objects import Object, ObjectKey, key_of

_PREFIX = "cluster-addon-"


def addon_key(cluster: ObjectKey) -> ObjectKey:
    """The ClusterAddon of a Cluster."""
    return ObjectKey(cluster.namespace, f"{_PREFIX}{cluster.name}")


def to_addon(cluster: Object) -> Iterable[ObjectKey]:
    """Maps a Cluster to its ClusterAddon."""
    return (addon_key(key_of(cluster)),)


def to_cluster(addon: Object) -> Iterable[ObjectKey]:
    """Maps a ClusterAddon to its Cluster, by its name."""
    key = key_of(addon)
    if not key.name.startswith(_PREFIX):
        return ()
    return (ObjectKey(key.namespace, key.name.removeprefix(_PREFIX)),)


class AddonCreation:
    """Reconciles one Cluster at a time."""

    def __init__(self, client: Client, *, clusters: Cache, addons: Cache) -> None:
        self._client = client
        self._clusters = clusters
        self._addons = addons

    async def reconcile(self, key: ObjectKey) -> None:
        found = self._clusters.get(key)
        if found is None or addon_key(key) in self._addons:
            return
        cluster = read_cluster(found)
        if not cluster.has_topology or cluster.paused or cluster.metadata.deletion_timestamp is not None:
            return
        with suppress(AlreadyExists):
            self._addons.learn(await self._client.create(CLUSTER_ADDONS, _addon(cluster)))


def _addon(cluster: CapiCluster) -> Object:
    owner = {
        "apiVersion": cluster.api_version,
        "kind": "Cluster",
        "name": cluster.metadata.name,
        "uid": cluster.metadata.uid,
    }
    key = addon_key(cluster.key)
    return {
        "apiVersion": CLUSTER_ADDONS.api_version,
        "kind": CLUSTER_ADDONS.kind,
        "metadata": {"name": key.name, "namespace": key.namespace, "ownerReferences": [owner]},
        "spec": {"clusterRef": {**owner, "namespace": key.namespace}},
    }
