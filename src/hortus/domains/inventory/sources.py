"""Sources of the inventory: the kinds whose objects name clusters, each with one small class.

A source is the seam for further kinds (Kyma, Cluster API): it has a cache, and makes of each of its objects at most one
`ClusterClaim`. It decides nothing and asks no server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from hortus.domains.clusters.types import Runtime
from hortus.domains.credentials.types import GardenerCluster
from hortus.domains.credentials.types import Label as KymaLabel
from hortus.domains.inventory.claims import ClusterClaim, Origin, checksum, place_token
from hortus.domains.inventory.types import ProfileLabel, SourceLabel
from hortus.engine import Cache, NotReadable, metadata_of, read
from hortus.engine.kubeconfigs import KubeconfigSecret
from hortus.engine.remote import KubeconfigRef
from hortus.kube.objects import Object, key_of

USUAL_KEYS: Final = ("config", "kubeconfig", "value")
"""Keys under which kubeconfigs stand by convention: Kyma's, Hortus' own, Cluster API's."""


class ClusterSource(Protocol):
    """A kind whose objects name clusters."""

    @property
    def kind(self) -> str:
        """The kind, as it stands in origins."""

    @property
    def cache(self) -> Cache:
        """The objects of the kind."""

    def claim(self, obj: Object) -> ClusterClaim:
        """The claim of one object. Raises NotReadable."""


class RuntimeSource:
    """Runtimes: what people ordered."""

    kind: Final = "Runtime"
    rank: Final = 0

    def __init__(self, cache: Cache) -> None:
        self.cache = cache

    def claim(self, obj: Object) -> ClusterClaim:
        try:
            runtime = read(Runtime, obj)
        except NotReadable:
            # Its metadata is enough for a profile: a field of another type must not take the cluster out of the fleet.
            runtime = Runtime(metadata=metadata_of(obj))
        metadata = runtime.metadata
        identity = metadata.labels.get(KymaLabel.RUNTIME_ID) or metadata.name
        shoot = runtime.spec.shoot if runtime.spec is not None else None
        return ClusterClaim(
            origin=Origin(self.kind, key_of(obj)),
            rank=self.rank,
            created=metadata.creation_timestamp or "",
            name=identity,
            display_name=metadata.name,
            tokens=frozenset({_id_token(metadata.namespace, identity)}),
            labels=metadata.labels,
            region=shoot.region if shoot is not None else "",
            provider=shoot.provider.type if shoot is not None else "",
            purpose=shoot.purpose if shoot is not None else "",
            shoot=shoot.name if shoot is not None else "",
            problem=f"Runtime {metadata.name} has no GardenerCluster with a kubeconfig yet; it is waited for.",
            fingerprint=checksum(identity),
            leaving=metadata.deletion_timestamp is not None,
        )


class GardenerClusterSource:
    """GardenerClusters: shoots with a kubeconfig that is kept fresh."""

    kind: Final = "GardenerCluster"
    rank: Final = 1

    def __init__(self, cache: Cache) -> None:
        self.cache = cache

    def claim(self, obj: Object) -> ClusterClaim:
        cluster = read(GardenerCluster, obj)
        metadata, secret = cluster.metadata, cluster.secret
        place = KubeconfigRef(secret.namespace, secret.name, secret.key)
        identity = metadata.labels.get(KymaLabel.RUNTIME_ID) or metadata.name
        return ClusterClaim(
            origin=Origin(self.kind, key_of(obj)),
            rank=self.rank,
            created=metadata.creation_timestamp or "",
            name=identity,
            display_name=cluster.shoot,
            tokens=frozenset({_id_token(metadata.namespace, identity), place_token(place)}),
            labels=metadata.labels,
            region=metadata.labels.get(KymaLabel.REGION, ""),
            provider=metadata.labels.get(KymaLabel.PROVIDER, ""),
            shoot=cluster.shoot,
            place=place,
            problem=f"{place} does not exist yet; it is waited for.",
            fingerprint=checksum(str(place), cluster.shoot),
            credential=cluster.condition,
            leaving=metadata.deletion_timestamp is not None,
        )


class SecretSource:
    """Secrets with the label fleet.hortus.dev/kubeconfig: any cluster at all."""

    kind: Final = "Secret"
    rank: Final = 9

    def __init__(self, cache: Cache) -> None:
        self.cache = cache

    def claim(self, obj: Object) -> ClusterClaim:
        secret = read(KubeconfigSecret, obj)
        metadata, labels = secret.metadata, secret.labels
        key = kubeconfig_key(secret.data, metadata.annotations)
        place = KubeconfigRef(metadata.namespace, metadata.name, key) if key else None
        wanted = metadata.annotations.get(SourceLabel.KEY)
        lacking = f"key {wanted}, which annotation {SourceLabel.KEY} names" if wanted else "a key with a kubeconfig"
        return ClusterClaim(
            origin=Origin(self.kind, key_of(obj)),
            rank=self.rank,
            created=metadata.creation_timestamp or "",
            name=labels.get(SourceLabel.NAME) or _without_affix(metadata.name),
            tokens=frozenset({place_token(place)} if place is not None else ()),
            labels=labels,
            region=labels.get(ProfileLabel.REGION, ""),
            provider=labels.get(ProfileLabel.PROVIDER, ""),
            purpose=labels.get(ProfileLabel.PURPOSE, ""),
            place=place,
            problem="" if place else f"Secret {secret.key} lacks {lacking}: add it (its owner).",
            fingerprint=checksum(key, secret.data.get(key, "")),
            leaving=metadata.deletion_timestamp is not None,
        )


SECRET_SELECTOR: Final = f"{SourceLabel.KUBECONFIG}=true"
"""Selects the Secrets that are sources."""


def kubeconfig_key(data: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """The key of a Secret's data that holds the kubeconfig; empty when there is none."""
    wanted = annotations.get(SourceLabel.KEY)
    usual: Sequence[str] = (wanted,) if wanted else USUAL_KEYS
    found = next((key for key in usual if key in data), "")
    return found or (next(iter(data)) if len(data) == 1 and not wanted else "")


def _id_token(namespace: str, identity: str) -> str:
    return f"id {namespace}/{identity}"


def _without_affix(name: str) -> str:
    return name.removesuffix("-kubeconfig").removeprefix("kubeconfig-") or name
