"""Finds the cluster that a request names: the GardenerCluster, and the place of its admin kubeconfig."""

from __future__ import annotations

from collections.abc import Iterable

from hortus.domains.access import service
from hortus.domains.access.types import ClusterAccess, Reason
from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster, Label
from hortus.engine import NEVER, Actor, StepError, TypedCache, by_owner_uid, metadata_of
from hortus.engine.kubeconfigs import KubeconfigSecret
from hortus.engine.remote import KubeconfigRef
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey

_RUNTIME = "Runtime"
_RUNTIME_PAUSE = 60.0
"""Seconds until a Runtime that is missing is looked for again: Runtimes are not watched."""


class ClusterLookup:
    """Looks into caches of requests, GardenerClusters and Secrets; Runtimes, which few requests name, are read."""

    def __init__(
        self,
        client: Client,
        *,
        accesses: TypedCache[ClusterAccess],
        clusters: TypedCache[GardenerCluster],
        kubeconfigs: TypedCache[KubeconfigSecret],
    ) -> None:
        self._client = client
        self._accesses = accesses
        self._clusters = clusters
        self._kubeconfigs = kubeconfigs
        accesses.add_index("cluster", _by_cluster)
        kubeconfigs.raw.add_index("owner", by_owner_uid)

    async def key_of(self, access: ClusterAccess) -> ObjectKey:
        """The GardenerCluster that the request is for, which need not be there. Raises StepError."""
        reference = access.spec.cluster_ref
        name, namespace = reference.name, _namespace(access)
        if reference.kind == _RUNTIME:
            name = await self._runtime_id(namespace, name)
        return ObjectKey(namespace, name)

    def cluster_at(self, key: ObjectKey) -> GardenerCluster:
        """Raises StepError for a GardenerCluster that is not there."""
        found = self._clusters.get(key)
        if found is None:
            raise StepError(
                f"spec.clusterRef: there is no GardenerCluster {key} (requester: it is waited for; "
                "clusterRef cannot be changed)",
                reason=Reason.CLUSTER_MISSING,
                actor=Actor.USER,
                after=NEVER,
            )
        return found

    def place_of(self, cluster: GardenerCluster) -> KubeconfigRef:
        """The place of a GardenerCluster's admin kubeconfig. Raises StepError."""
        return service.place_of(cluster, self._kubeconfigs.by("owner", cluster.metadata.uid))

    def known(self, access: ClusterAccess) -> tuple[ObjectKey, KubeconfigRef] | None:
        """The cluster that a request was served in, and the way in; None when there is none now."""
        key = _noted(access)
        found = self._clusters.get(key)
        if found is None:
            return None
        try:
            return key, self.place_of(found)
        except StepError:
            return None

    async def gone(self, access: ClusterAccess) -> bool:
        """True when the cluster that a request was served in does not exist; the server itself is asked."""
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

    def requests_of_cluster(self, cluster: Object) -> Iterable[ObjectKey]:
        """The requests for a GardenerCluster."""
        metadata = metadata_of(cluster)
        return self.requests_for(metadata.namespace, metadata.name)

    def requests_of_kubeconfig(self, secret: Object) -> Iterable[ObjectKey]:
        """The requests for the cluster that a Secret leads to."""
        metadata = metadata_of(secret)
        for owner in metadata.owner_references:
            if owner.kind == GARDENER_CLUSTERS.kind:
                yield from self.requests_for(metadata.namespace, owner.name)

    async def _runtime_id(self, namespace: str, name: str) -> str:
        try:
            runtime = await self._client.get(RUNTIMES, name, namespace, metadata_only=True)
        except NotFound:
            raise StepError(
                f"spec.clusterRef: there is no Runtime {namespace}/{name} (requester: make another ClusterAccess; the "
                "reference cannot be changed)",
                reason=Reason.CLUSTER_MISSING,
                actor=Actor.USER,
                after=_RUNTIME_PAUSE,
            ) from None
        return metadata_of(runtime).labels.get(Label.RUNTIME_ID) or name


def _namespace(access: ClusterAccess) -> str:
    return access.spec.cluster_ref.namespace or access.metadata.namespace


def _by_cluster(access: ClusterAccess) -> Iterable[str]:
    reference = access.spec.cluster_ref
    return (f"{_namespace(access)}/" if reference.kind == _RUNTIME else f"{_namespace(access)}/{reference.name}",)


def _noted(access: ClusterAccess) -> ObjectKey:
    namespace, _, name = access.status.cluster.partition("/")
    return ObjectKey(namespace, name)
