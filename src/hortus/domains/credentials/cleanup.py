"""Secrets go with their GardenerClusters, also when nobody was running.

The owner reference has the garbage collector do it, and what it misses is found by claims. A Secret that is not watched
can be found by nothing: then, and only then, a finalizer holds its cluster.
"""

from __future__ import annotations

from hortus.domains.credentials.ownership import (
    LABEL_LIMIT,
    Claim,
    choose_secret,
    is_guessed,
    key_of_claim,
    label_of,
    names_place,
    secret_reference,
)
from hortus.domains.credentials.types import FINALIZER, GARDENER_CLUSTERS
from hortus.domains.credentials.vault import Vault
from hortus.engine import Cache, add_finalizer, has_finalizer, remove_finalizer
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey


class Cleanup:
    """Raises KubeError."""

    def __init__(self, *, client: Client, clusters: Cache, secrets: Cache, vault: Vault, namespace: str) -> None:
        """`namespace` is the watched one; empty for all."""
        self._client = client
        self._clusters = clusters
        self._secrets = secrets
        self._vault = vault
        self._namespace = namespace

    def watches(self, namespace: str) -> bool:
        return self._namespace in ("", namespace)

    async def after(self, key: ObjectKey) -> None:
        """Delete the Secrets of a cluster that is no more."""
        claim = Claim(key.namespace, key.name)
        for secret in self._secrets.by("claim", claim.key):
            if not await self._lives(claim, guessed=is_guessed(secret)):
                await self._vault.delete(secret)

    async def _lives(self, claim: Claim, *, guessed: bool) -> bool:
        """Ask the server itself: a cache that is behind must not cost anybody a credential.

        Labels name no namespace. The Secret that they are on may as well be that of a cluster elsewhere which keeps its
        Secret here, as the Go system laid it out.
        """
        label = label_of(claim.name)
        # A label as long as labels get may stand for a longer name.
        fields = f"metadata.name={label}" if len(label) < LABEL_LIMIT else ""
        namespace = self._namespace if guessed else claim.namespace
        listed = await self._client.list(GARDENER_CLUSTERS, namespace, fields=fields, limit=500)
        return any(
            key_of_claim(cluster) == claim.key
            or (guessed and names_place(cluster, label=label, namespace=claim.namespace))
            for cluster in listed.items
        )

    async def hold(self, cluster: Object) -> Object:
        """See to it that a Secret which is not watched is not forgotten when its cluster goes."""
        if self.watches(secret_reference(cluster).namespace):
            return cluster
        held = await add_finalizer(self._client, GARDENER_CLUSTERS, cluster, FINALIZER)
        if held is not cluster:
            self._clusters.learn(held)
        return held

    async def release(self, cluster: Object) -> None:
        """Delete the Secret that the finalizer stands for, then let the cluster go."""
        if not has_finalizer(cluster, FINALIZER):
            return
        secret = choose_secret(cluster, (), await self._vault.read(secret_reference(cluster)))
        if secret is not None:
            await self._vault.delete(secret)
        await remove_finalizer(self._client, GARDENER_CLUSTERS, cluster, FINALIZER)
