"""The debt of a GardenerCluster that is released although its Secret could not be deleted."""

from __future__ import annotations

from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.leftovers import Debt, object_item, source_of
from hortus.engine.leftovers.types import LeftoverCluster, LeftoverReason
from hortus.kube.errors import KubeError

RELEASE_AFTER = 3600.0
"""Seconds after the beginning of a deletion from which a GardenerCluster is released without its Secret. Only a missing
permission outlasts that: the Secret lies where the controller does not watch."""


def secret_debt(cluster: GardenerCluster, error: KubeError) -> Debt:
    """The debt for the Secret, which holds a kubeconfig until it is deleted."""
    metadata, place = cluster.metadata, cluster.secret
    item = object_item(SECRETS, place.namespace, place.name, where="Management")
    return Debt(
        source=source_of(GARDENER_CLUSTERS.kind, metadata),
        reason=LeftoverReason.SECRET_NOT_DELETED,
        message=f"its kubeconfig could not be deleted: {error}",
        items=(item,),
        cluster=LeftoverCluster(name=metadata.name, namespace=metadata.namespace, shoot=cluster.shoot),
        since=metadata.deletion_timestamp,
    )
