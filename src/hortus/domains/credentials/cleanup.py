"""Deletion of Secrets with their GardenerClusters, also of those deleted while no controller ran.

The owner reference has the garbage collector do it, and what it misses is found by claims. A Secret that is not watched
can be found by nothing, and one elsewhere may be out of the reach of the cluster's deputy: then, and only then, a
finalizer keeps its cluster until the Secret is deleted or recorded as left.
"""

from __future__ import annotations

import structlog

from hortus.domains.credentials.ownership import (
    LABEL_LIMIT,
    Claim,
    choose_secret,
    is_guessed,
    key_of_claim,
    label_of,
    names_place,
)
from hortus.domains.credentials.secrets import SecretStores
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.engine import TypedCache, read
from hortus.engine.deputies import Action, Deputies
from hortus.engine.kubeconfigs import SECRETS, KubeconfigSecret
from hortus.kube import Client
from hortus.kube.objects import ObjectKey

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Cleanup:
    """Deletes Secrets whose GardenerCluster is gone. Raises KubeError."""

    def __init__(
        self,
        *,
        client: Client,
        secrets: TypedCache[KubeconfigSecret],
        stores: SecretStores,
        deputies: Deputies,
        namespace: str,
    ) -> None:
        """`namespace` is the watched one; empty for all."""
        self._client = client
        self._secrets = secrets
        self._stores = stores
        self._deputies = deputies
        self._namespace = namespace

    def needs_finalizer(self, cluster: GardenerCluster) -> bool:
        """True where the Secret of a cluster that is gone could not be found, or perhaps not be deleted."""
        watched = self._namespace in ("", cluster.secret.namespace)
        return not watched or not (cluster.is_at_home or self._deputies.trusts(cluster.metadata.namespace))

    async def delete_secrets_of(self, key: ObjectKey) -> None:
        """Delete the Secrets of a cluster that is gone."""
        claim = Claim(key.namespace, key.name)
        for secret in self._secrets.by("claim", claim.key):
            if not await self._lives(claim, guessed=is_guessed(secret)) and await self._may_delete(claim, secret):
                await self._delete(claim.namespace, secret)

    async def delete_secret_of(self, cluster: GardenerCluster) -> None:
        """Delete the Secret that the finalizer of a cluster stands for."""
        # Read with our permissions: the Secret that a cluster names need not be its own, and only its own is recorded.
        secret = choose_secret(cluster, (), await self._stores.ours.read(cluster.secret.object_key))
        if secret is not None:
            await self._delete(cluster.metadata.namespace, secret)

    async def _delete(self, namespace: str, secret: KubeconfigSecret) -> None:
        """Delete a Secret of a cluster in `namespace`."""
        if await self._stores.of(namespace, secret.key).delete(secret):
            _log.info("deleted the secret of a cluster that is gone", secret=str(secret.key))

    async def _may_delete(self, claim: Claim, secret: KubeconfigSecret) -> bool:
        """Returns whether the clusters of the claim's namespace may delete the Secret; nothing repeats what they may
        not, since a cluster that is recorded holds a finalizer."""
        key = secret.key
        if key.namespace == claim.namespace:
            return True
        allowed = await self._deputies.may(claim.namespace, Action("delete", SECRETS.group, SECRETS.plural, *key))
        if not allowed:
            _log.warning("left the secret of a cluster that is gone", secret=str(key), claim=claim.key)
        return allowed

    async def _lives(self, claim: Claim, *, guessed: bool) -> bool:
        """True when the cluster of a claim exists at the server: a cache that is behind must not cost a credential.

        Labels name no namespace. The Secret that they are on may as well be that of a cluster elsewhere which keeps its
        Secret here, as the Go system laid it out.
        """
        label = label_of(claim.name)
        # A label as long as labels get may stand for a longer name.
        fields = f"metadata.name={label}" if len(label) < LABEL_LIMIT else ""
        namespace = self._namespace if guessed else claim.namespace
        listed = await self._client.list(GARDENER_CLUSTERS, namespace, fields=fields, limit=500)
        found = [read(GardenerCluster, cluster) for cluster in listed.items]
        return any(
            key_of_claim(cluster.key) == claim.key
            or (guessed and names_place(cluster, label=label, namespace=claim.namespace))
            for cluster in found
        )
