"""From a request to the cluster that it names: the GardenerCluster, and where its admin kubeconfig lies."""

from __future__ import annotations

from collections.abc import Iterable

from hortus.domains.access import service
from hortus.domains.access.service import Setback
from hortus.domains.access.types import Reason
from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS, Label
from hortus.engine import Cache, by_owner_uid
from hortus.engine.remote import Place
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey

_RUNTIME = "Runtime"


class ClusterLookup:
    """Over caches of requests, GardenerClusters and their Secrets; Runtimes are asked for, few requests name one."""

    def __init__(self, client: Client, *, accesses: Cache, clusters: Cache, kubeconfigs: Cache) -> None:
        self._client = client
        self._accesses = accesses
        self._clusters = clusters
        self._kubeconfigs = kubeconfigs
        accesses.add_index("cluster", _by_cluster)
        kubeconfigs.add_index("owner", by_owner_uid)

    async def cluster_of(self, access: Object) -> Object:
        """The GardenerCluster that the request is for. Raises Setback."""
        reference = access["spec"]["clusterRef"]
        kind, name = reference.get("kind") or GARDENER_CLUSTERS.kind, reference["name"]
        namespace = reference.get("namespace") or access["metadata"]["namespace"]
        key = ObjectKey(namespace, name)
        if kind == _RUNTIME:
            key = ObjectKey(namespace, await self._runtime_id(namespace, name))
        found = self._clusters.get(key)
        if found is None:
            raise _missing(access, f"there is no GardenerCluster {key.namespace}/{key.name}")
        return found

    def kubeconfigs_of(self, cluster: Object) -> list[Object]:
        """The Secrets that belong to a GardenerCluster."""
        return self._kubeconfigs.by("owner", cluster["metadata"]["uid"])

    async def known(self, access: Object) -> tuple[ObjectKey, Place] | None:
        """The cluster that a request was served in, and the way in; None when there is none now."""
        found = self._clusters.get(_noted(access))
        if found is None:
            return None
        try:
            return _noted(access), service.place_of(found, self.kubeconfigs_of(found))
        except Setback:
            return None

    async def gone(self, access: Object) -> bool:
        """Whether the cluster that a request was served in is no more; the server itself is asked."""
        key = _noted(access)
        if not key.name:
            return True
        try:
            await self._client.get(GARDENER_CLUSTERS, key.name, key.namespace, metadata_only=True)
        except NotFound:
            return True
        return False

    def requests_for(self, namespace: str, name: str) -> Iterable[ObjectKey]:
        """The requests that a GardenerCluster concerns: those that name it, and those of Runtimes in its namespace."""
        yield from self._accesses.keys_by("cluster", f"{namespace}/{name}")
        yield from self._accesses.keys_by("cluster", f"{namespace}/")

    def requests_of_kubeconfig(self, secret: Object) -> Iterable[ObjectKey]:
        """The requests for the cluster that a Secret leads to."""
        metadata = secret["metadata"]
        for owner in metadata.get("ownerReferences") or ():
            if owner["kind"] == GARDENER_CLUSTERS.kind:
                yield from self.requests_for(metadata["namespace"], owner["name"])

    async def _runtime_id(self, namespace: str, name: str) -> str:
        try:
            runtime = await self._client.get(RUNTIMES, name, namespace, metadata_only=True)
        except NotFound:
            raise Setback(
                Reason.CLUSTER_MISSING,
                f"spec.clusterRef: there is no Runtime {namespace}/{name} (requester: make another ClusterAccess; the "
                "reference cannot be changed)",
                after=60.0,
            ) from None
        return str((runtime["metadata"].get("labels") or {}).get(Label.RUNTIME_ID) or name)


def _by_cluster(access: Object) -> Iterable[str]:
    reference = access["spec"]["clusterRef"]
    namespace = reference.get("namespace") or access["metadata"]["namespace"]
    return (f"{namespace}/" if reference.get("kind") == _RUNTIME else f"{namespace}/{reference['name']}",)


def _noted(access: Object) -> ObjectKey:
    namespace, _, name = str((access.get("status") or {}).get("cluster") or "").partition("/")
    return ObjectKey(namespace, name)


def _missing(access: Object, what: str) -> Setback:
    return Setback(
        Reason.CLUSTER_MISSING,
        f"spec.clusterRef: {what} (requester: it is waited for; clusterRef cannot be changed)",
    )
