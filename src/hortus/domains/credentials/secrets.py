"""The Secrets of GardenerClusters: found in the cache or on the server, written, and traced back to their clusters.

Failures are StepErrors with reasons of the contract.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from hortus.domains.credentials import service
from hortus.domains.credentials.ownership import (
    AmbiguousSecret,
    Claim,
    by_claim,
    by_shoot,
    choose_secret,
    claim_of,
    is_ours,
    key_of_claim,
)
from hortus.domains.credentials.types import MANAGER, GardenerCluster, Reason
from hortus.engine import Actor, Cache, StepError, TypedCache, read
from hortus.engine.deputies import Deputies
from hortus.engine.kubeconfigs import IssuedKubeconfig, KubeconfigSecret, KubeconfigStore
from hortus.kube.errors import AlreadyExists, BadRequest, KubeError
from hortus.kube.objects import Object, ObjectKey, key_of


class SecretStores:
    """The Secrets that GardenerClusters write, with the permissions by which each is written."""

    def __init__(self, ours: KubeconfigStore, cache: Cache, deputies: Deputies) -> None:
        """`ours` has the permissions of Hortus; `cache` is that of all Secrets."""
        self.ours = ours
        self._cache = cache
        self._deputies = deputies

    def of(self, namespace: str, secret: ObjectKey) -> KubeconfigStore:
        """The store for a Secret of the clusters of a namespace: by their deputy where it lies elsewhere."""
        return self.ours if namespace == secret.namespace else self.by_deputy(namespace)

    def by_deputy(self, namespace: str) -> KubeconfigStore:
        """The store with the permissions of the clusters of a namespace."""
        if self._deputies.trusts(namespace):
            return self.ours
        return KubeconfigStore(self._deputies.client(namespace), self._cache, field_manager=MANAGER)


class ClusterSecrets:
    """Finds and writes Secrets; gives indexes to the caches of both kinds. Raises StepError."""

    def __init__(
        self,
        clusters: TypedCache[GardenerCluster],
        secrets: TypedCache[KubeconfigSecret],
        stores: SecretStores,
    ) -> None:
        self._clusters = clusters
        self._secrets = secrets
        self._stores = stores
        clusters.add_index("shoot", lambda cluster: (cluster.shoot,))
        clusters.raw.add_index("claim", lambda cluster: (key_of_claim(key_of(cluster)),))
        secrets.add_index("shoot", by_shoot)
        secrets.add_index("claim", by_claim)

    def find(self, cluster: GardenerCluster) -> KubeconfigSecret | None:
        """The Secret of the cluster, as far as the cache shows it."""
        try:
            found = choose_secret(cluster, self._secrets.by("shoot", cluster.shoot), None, self._holder)
        except AmbiguousSecret as error:
            raise StepError(str(error), reason=Reason.CHECK_FAILED, actor=Actor.OPERATOR) from error
        if found is not None:
            return found
        return choose_secret(cluster, (), self._secrets.get(cluster.secret.object_key))

    async def find_unlabelled(self, cluster: GardenerCluster) -> KubeconfigSecret | None:
        """The Secret of the wanted name that the cache does not show: it lost its label, or is not watched.

        A new cluster has none as a rule: nobody asks, and its creation of one fails when the name is taken.
        """
        key = cluster.secret.object_key
        if service.is_new(cluster) and key not in self._secrets.raw:
            return None
        with _reported_as(Reason.CHECK_FAILED):
            try:
                found = await self._stores.of(cluster.metadata.namespace, key).read(key)
            except BadRequest:
                # No name of a Secret: its creation fails, in the words of the API server.
                return None
        if found is not None and not is_ours(cluster, found):
            raise service.secret_taken(cluster)
        return found

    def keeper(self, cluster: GardenerCluster, secret: KubeconfigSecret) -> GardenerCluster | None:
        """The GardenerCluster of the same shoot that keeps the Secret; None when `cluster` does so itself."""
        if self._clusters.keys_by("shoot", cluster.shoot) == [cluster.key]:
            return None
        keeper = service.other_keeper(cluster, secret, self._clusters.by("shoot", cluster.shoot))
        if keeper is not None and service.lacks_key(cluster, secret):
            raise service.lacks_shared_key(cluster, secret, keeper)
        return keeper

    async def create(self, cluster: GardenerCluster, kubeconfig: IssuedKubeconfig) -> KubeconfigSecret | None:
        """The new Secret; None when there is one of that name that the cache does not show."""
        with _reported_as(Reason.CREATE_FAILED):
            try:
                store = self._stores.of(cluster.metadata.namespace, cluster.secret.object_key)
                return await store.create(service.secret_plan(cluster).created(kubeconfig))
            except AlreadyExists:
                return None

    async def taken(self, cluster: GardenerCluster) -> KubeconfigSecret:
        """The Secret that has the wanted name already, if it is ours: somebody took its shoot label off."""
        with _reported_as(Reason.CHECK_FAILED):
            key = cluster.secret.object_key
            found = choose_secret(cluster, (), await self._stores.of(cluster.metadata.namespace, key).read(key))
        if found is None:
            raise service.secret_taken(cluster)
        return found

    async def change(
        self, cluster: GardenerCluster, secret: KubeconfigSecret, patch: Object
    ) -> KubeconfigSecret | None:
        """The Secret after the merge patch; None when it is gone."""
        namespace = cluster.metadata.namespace
        store = self._stores.of(namespace, secret.key)
        if claim_of(secret) is None and not is_ours(cluster, secret):
            # Another system's, and not a plain object of the cluster before this patch.
            store = self._stores.by_deputy(namespace)
        with _reported_as(Reason.UPDATE_FAILED):
            return await store.change(secret, patch)

    def clusters_of(self, secret: Object) -> Iterable[ObjectKey]:
        """The GardenerClusters that a Secret concerns: the one it belongs to, and those of its shoot."""
        found_secret = read(KubeconfigSecret, secret)
        claim = claim_of(found_secret)
        found = dict.fromkeys(self._clusters.keys_by("claim", claim.key)) if claim is not None else {}
        if claim is not None and not found:
            # Its GardenerCluster is gone, perhaps while we were down: the key has it cleaned up.
            found[ObjectKey(claim.namespace, claim.name)] = None
        for shoot in by_shoot(found_secret):
            found |= dict.fromkeys(self._clusters.keys_by("shoot", shoot))
        return found

    def _holder(self, claim: Claim) -> GardenerCluster | None:
        return next(iter(self._clusters.by("claim", claim.key)), None)


@contextmanager
def _reported_as(reason: str) -> Iterator[None]:
    """Make a StepError with this reason of an error of the management cluster."""
    try:
        yield
    except KubeError as error:
        raise StepError(str(error), reason=reason, actor=Actor.OPERATOR) from error
