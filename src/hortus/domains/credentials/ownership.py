"""Which GardenerCluster a kubeconfig Secret belongs to: by namespace, name and uid, never by a name alone.

A Secret in its cluster's namespace says so by its owner reference, one in another namespace by an annotation, since an
owner reference cannot lead there. The Go system leaves labels alone: they count for a cluster of the Secret's own
namespace. So a namesake in another namespace neither finds, changes nor deletes what is not its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from hortus.domains.credentials.types import GARDENER_CLUSTERS, MANAGER, Annotation, Label
from hortus.kube.objects import Object

LABEL_LIMIT = 63
"""Characters of a label's value; names of objects have 253."""


def label_of(name: str) -> str:
    """The value of the cluster label for a GardenerCluster's name: itself, shortened where no label is that long."""
    if len(name) <= LABEL_LIMIT:
        return name
    return f"{name[: LABEL_LIMIT - 13]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


class AmbiguousSecret(Exception):
    """More than one Secret claims to belong to the same shoot."""


class SecretReference(NamedTuple):
    namespace: str
    name: str
    key: str


class Claim(NamedTuple):
    """The GardenerCluster that a Secret says it belongs to."""

    namespace: str
    name: str
    """Shortened where only a label has it."""

    @property
    def key(self) -> str:
        """The same for all ways in which a Secret may say it."""
        return f"{self.namespace}/{label_of(self.name)}"

    def is_of(self, cluster: Object) -> bool:
        return self.key == key_of_claim(cluster)


Holder = Callable[[Claim], Object | None]
"""The living GardenerCluster behind a claim, None when there is none."""


def nobody(claim: Claim) -> None:
    """A Holder for those who cannot look: nobody else lives."""


def key_of_claim(cluster: Object) -> str:
    """The `Claim.key` of a cluster."""
    metadata = cluster["metadata"]
    return f"{metadata['namespace']}/{label_of(metadata['name'])}"


def claim_of(secret: Object) -> Claim | None:
    """The claim on a Secret; None when there is none."""
    if (said := _written_claim(secret)) is not None:
        return said
    metadata = secret["metadata"]
    labels = metadata.get("labels") or {}
    if labels.get(Label.MANAGED_BY) == MANAGER and labels.get(Label.CLUSTER_NAME):
        return Claim(metadata["namespace"], labels[Label.CLUSTER_NAME])
    return None


def is_guessed(secret: Object) -> bool:
    """True when the namespace of a Secret's claim is its own for want of a better one: labels name none."""
    return claim_of(secret) is not None and _written_claim(secret) is None


def names_place(cluster: Object, *, label: str, namespace: str) -> bool:
    """True when a cluster of this name, as a label has it, keeps its Secret in the namespace."""
    return label_of(cluster["metadata"]["name"]) == label and secret_reference(cluster).namespace == namespace


def _written_claim(secret: Object) -> Claim | None:
    """By owner reference or annotation, which name the namespace too."""
    metadata = secret["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("kind") == GARDENER_CLUSTERS.kind and _group(owner) == GARDENER_CLUSTERS.group:
            return Claim(metadata["namespace"], owner["name"])
    parts = ((metadata.get("annotations") or {}).get(Annotation.OWNER) or "").split("/")
    if len(parts) == _PARTS and all(parts):
        return Claim(parts[0], parts[1])
    return None


def by_claim(secret: Object) -> Iterable[str]:
    """For the index of a cache."""
    claim = claim_of(secret)
    return () if claim is None else (claim.key,)


def by_shoot(secret: Object) -> Iterable[str]:
    """For the index of a cache."""
    shoot = (secret["metadata"].get("labels") or {}).get(Label.SHOOT_NAME)
    return (shoot,) if shoot else ()


def mark_of(cluster: Object) -> str:
    """The value of the annotation on a Secret in another namespace."""
    metadata = cluster["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}/{metadata['uid']}"


_PARTS = 3


def secret_reference(cluster: Object) -> SecretReference:
    secret = cluster["spec"]["kubeconfig"]["secret"]
    return SecretReference(secret["namespace"], secret["name"], secret["key"])


def shoot_name(cluster: Object) -> str:
    return str(cluster["spec"]["shoot"]["name"])


def is_at_home(cluster: Object) -> bool:
    """True when its Secret lies in its own namespace."""
    return secret_reference(cluster).namespace == str(cluster["metadata"]["namespace"])


def choose_secret(
    cluster: Object, by_shoot: Sequence[Object], by_name: Object | None, holder: Holder = nobody
) -> Object | None:
    """The Secret of this cluster: found by its shoot label, as the contract says, whatever its name.

    Only in the namespace that the cluster names: whoever may write Secrets elsewhere must not come by a kubeconfig.
    Only when no label leads to one, the Secret that has the wanted name counts, if it is ours for this very cluster:
    somebody took labels off. Raises AmbiguousSecret.
    """
    namespace = secret_reference(cluster).namespace
    found = [
        secret
        for secret in by_shoot
        if secret["metadata"]["namespace"] == namespace and _may_have(cluster, secret, holder)
    ]
    if len(found) > 1:
        names = ", ".join(sorted(f"{s['metadata']['namespace']}/{s['metadata']['name']}" for s in found))
        raise AmbiguousSecret(
            f"unexpected number of secrets with label {Label.SHOOT_NAME}={shoot_name(cluster)}: "
            f"{len(found)} ({names}); delete those which are not wanted"
        )
    if found:
        return found[0]
    return by_name if by_name is not None and is_ours(cluster, by_name) else None


def is_ours(cluster: Object, secret: Object) -> bool:
    """True when owner, labels or our own mark on a Secret say that it was written for this cluster."""
    claim = claim_of(secret)
    if claim is not None:
        return claim.is_of(cluster)
    metadata = secret["metadata"]
    if Label.CLUSTER_NAME in (metadata.get("labels") or {}) or not is_at_home(cluster):
        return False
    marks: Object = metadata.get("annotations") or {}
    return Annotation.CHECKSUM in marks


def _may_have(cluster: Object, secret: Object, holder: Holder) -> bool:
    """True when a Secret with the label of the cluster's shoot is its own, may be taken over, or is shared with it."""
    claim = claim_of(secret)
    if claim is not None and claim.is_of(cluster):
        return True
    if not is_at_home(cluster):
        return False
    if claim is None:
        # Laid out by another system, which the contract takes over.
        return True
    other = holder(claim)
    if other is None:
        return claim.namespace == secret_reference(cluster).namespace
    return is_at_home(other) and shoot_name(other) == shoot_name(cluster)


def holder_of(secret: Object, claimants: Sequence[Object]) -> Object:
    """Which of the GardenerClusters of one shoot keeps the Secret that all of them find: the one it belongs to.

    The others may read and renew it; were each to write its own labels, they would never come to rest.
    """
    claim = claim_of(secret)
    named = [cluster for cluster in claimants if claim is not None and claim.is_of(cluster)]
    return min(named or claimants, key=_seniority)


def _seniority(cluster: Object) -> tuple[str, str, str]:
    metadata = cluster["metadata"]
    return metadata.get("creationTimestamp") or "", metadata["namespace"], metadata["name"]


def _group(owner: Object) -> str:
    return str(owner.get("apiVersion", "")).partition("/")[0]
