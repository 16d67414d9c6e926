"""Ownership of kubeconfig Secrets: by namespace, name and uid of a GardenerCluster, never by a name alone.

A Secret in its cluster's namespace names it by its owner reference, one in another namespace by an annotation, since an
owner reference cannot lead there. The Go system leaves labels alone: they count for a cluster of the Secret's own
namespace. So a namesake in another namespace neither finds, changes nor deletes what is not its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from hortus.domains.credentials.types import GARDENER_CLUSTERS, MANAGER, Annotation, GardenerCluster, Label
from hortus.engine.kubeconfigs import KubeconfigSecret
from hortus.kube.objects import ObjectKey
from hortus.schema import OwnerReference

LABEL_LIMIT = 63
"""Characters of a label's value; names of objects have 253."""
_PARTS = 3
"""Parts of the owner annotation: namespace, name, uid."""


def label_of(name: str) -> str:
    """The value of the cluster label for a GardenerCluster's name: itself, shortened where no label is that long."""
    if len(name) <= LABEL_LIMIT:
        return name
    return f"{name[: LABEL_LIMIT - 13]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


class AmbiguousSecret(Exception):
    """More than one Secret claims to belong to the same shoot."""


class Claim(NamedTuple):
    """The GardenerCluster that a Secret says it belongs to."""

    namespace: str
    name: str
    """Shortened where only a label has it."""

    @property
    def key(self) -> str:
        """The key of the claim, equal for all ways in which a Secret states it."""
        return key_of_claim(ObjectKey(self.namespace, self.name))

    def is_of(self, cluster: GardenerCluster) -> bool:
        return self.key == key_of_claim(cluster.key)


Holder = Callable[[Claim], GardenerCluster | None]
"""The living GardenerCluster behind a claim, None when there is none."""


def nobody(claim: Claim) -> None:
    """A Holder that finds no cluster, for callers that cannot look."""


def key_of_claim(cluster: ObjectKey) -> str:
    """The `Claim.key` of a cluster."""
    return f"{cluster.namespace}/{label_of(cluster.name)}"


def claim_of(secret: KubeconfigSecret) -> Claim | None:
    """The claim on a Secret; None when there is none."""
    if (said := _written_claim(secret)) is not None:
        return said
    labels = secret.labels
    if labels.get(Label.MANAGED_BY) == MANAGER and labels.get(Label.CLUSTER_NAME):
        return Claim(secret.key.namespace, labels[Label.CLUSTER_NAME])
    return None


def is_guessed(secret: KubeconfigSecret) -> bool:
    """True when the namespace of a Secret's claim is its own for want of a better one: labels name none."""
    return claim_of(secret) is not None and _written_claim(secret) is None


def names_place(cluster: GardenerCluster, *, label: str, namespace: str) -> bool:
    """True when a cluster of this name, as a label has it, keeps its Secret in the namespace."""
    return label_of(cluster.metadata.name) == label and cluster.secret.namespace == namespace


def _written_claim(secret: KubeconfigSecret) -> Claim | None:
    """The claim by owner reference or annotation, which name the namespace too."""
    for owner in secret.metadata.owner_references:
        if owner.kind == GARDENER_CLUSTERS.kind and owner.api_version.partition("/")[0] == GARDENER_CLUSTERS.group:
            return Claim(secret.key.namespace, owner.name)
    parts = secret.annotations.get(Annotation.OWNER, "").split("/")
    if len(parts) == _PARTS and all(parts):
        return Claim(parts[0], parts[1])
    return None


def by_claim(secret: KubeconfigSecret) -> Iterable[str]:
    """Index values of a Secret: the key of its claim."""
    claim = claim_of(secret)
    return () if claim is None else (claim.key,)


def by_shoot(secret: KubeconfigSecret) -> Iterable[str]:
    """Index values of a Secret: the shoot of its label."""
    shoot = secret.labels.get(Label.SHOOT_NAME)
    return (shoot,) if shoot else ()


def mark_of(cluster: GardenerCluster) -> str:
    """The value of the annotation on a Secret in another namespace."""
    return f"{cluster.metadata.namespace}/{cluster.metadata.name}/{cluster.metadata.uid}"


def owner_of(cluster: GardenerCluster) -> OwnerReference:
    """The owner reference of a Secret in the cluster's namespace."""
    return OwnerReference(
        api_version=GARDENER_CLUSTERS.api_version,
        kind=GARDENER_CLUSTERS.kind,
        name=cluster.metadata.name,
        uid=cluster.metadata.uid,
    )


def choose_secret(
    cluster: GardenerCluster,
    by_shoot: Sequence[KubeconfigSecret],
    by_name: KubeconfigSecret | None,
    holder: Holder = nobody,
) -> KubeconfigSecret | None:
    """The Secret of this cluster: found by its shoot label, as the contract says, whatever its name.

    Only in the namespace that the cluster names: permission to write Secrets elsewhere must not lead to a kubeconfig.
    Only when no label leads to one, the Secret that has the wanted name counts, if it is ours for this very cluster:
    somebody took labels off. Raises AmbiguousSecret.
    """
    namespace = cluster.secret.namespace
    found = [secret for secret in by_shoot if secret.key.namespace == namespace and _may_have(cluster, secret, holder)]
    if len(found) > 1:
        names = ", ".join(sorted(str(secret.key) for secret in found))
        raise AmbiguousSecret(
            f"unexpected number of secrets with label {Label.SHOOT_NAME}={cluster.shoot}: "
            f"{len(found)} ({names}); delete those which are not wanted"
        )
    if found:
        return found[0]
    return by_name if by_name is not None and is_ours(cluster, by_name) else None


def is_ours(cluster: GardenerCluster, secret: KubeconfigSecret) -> bool:
    """True when owner, labels or our own mark on a Secret say that it was written for this cluster."""
    claim = claim_of(secret)
    if claim is not None:
        return claim.is_of(cluster)
    if Label.CLUSTER_NAME in secret.labels or not cluster.is_at_home:
        return False
    return Annotation.CHECKSUM in secret.annotations


def _may_have(cluster: GardenerCluster, secret: KubeconfigSecret, holder: Holder) -> bool:
    """True when a Secret with the label of the cluster's shoot is its own, may be taken over, or is shared with it."""
    claim = claim_of(secret)
    if claim is not None and claim.is_of(cluster):
        return True
    if not cluster.is_at_home:
        return False
    if claim is None:
        # Laid out by another system, which the contract takes over.
        return True
    other = holder(claim)
    if other is None:
        return claim.namespace == cluster.secret.namespace
    return other.is_at_home and other.shoot == cluster.shoot


def holder_of(secret: KubeconfigSecret, claimants: Sequence[GardenerCluster]) -> GardenerCluster:
    """The one GardenerCluster of a shoot that keeps the Secret which all of them find: the one it belongs to.

    The others may read and renew it; were each to write its own labels, they would never come to rest.
    """
    claim = claim_of(secret)
    named = [cluster for cluster in claimants if claim is not None and claim.is_of(cluster)]
    return min(named or claimants, key=_seniority)


class Creations:
    """The GardenerClusters that make their Secrets now: one at a time of those that share one.

    Of two Secrets that twins made at once, neither could be recognised as the shoot's.
    """

    def __init__(self) -> None:
        self._makers: dict[tuple[str, str], ObjectKey] = {}
        """By namespace of the Secret and shoot."""

    def begin(self, cluster: GardenerCluster) -> bool:
        """Returns False while another cluster makes the Secret."""
        return self._makers.setdefault((cluster.secret.namespace, cluster.shoot), cluster.key) == cluster.key

    def end(self, key: ObjectKey) -> None:
        """End the creation; called after each reconcile, also after one that made nothing."""
        for place in [place for place, maker in self._makers.items() if maker == key]:
            del self._makers[place]


def _seniority(cluster: GardenerCluster) -> tuple[str, ObjectKey]:
    return cluster.metadata.creation_timestamp or "", cluster.key
