"""The GardenerCluster and its Secret in the dashboard's page of a cluster, with the age of the kubeconfig."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from hortus.domains.credentials.rows import ClusterRows, ClusterSubject
from hortus.domains.credentials.types import GARDENER_CLUSTERS, SECRET_SELECTOR, Annotation, GardenerCluster
from hortus.engine import metadata_of
from hortus.engine.fleet import FleetKind, FleetObjects, reading, seconds_of
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.pages import ClusterNames, ClusterPart, TreeNode, node_of
from hortus.kube.objects import ObjectKey
from hortus.schema import ObjectMeta

_CLUSTERS = FleetKind(GARDENER_CLUSTERS, reading(GardenerCluster))
_SECRETS = FleetKind(SECRETS, metadata_of, labels=SECRET_SELECTOR, metadata_only=True)


class CredentialPart(ClusterPart):
    """The GardenerCluster of a cluster, and below it the Secret with the kubeconfig."""

    kinds = (_CLUSTERS, _SECRETS)
    order = 10

    def names(self, objects: FleetObjects, cluster: ClusterNames) -> Iterable[str]:
        for found in _clusters(objects, cluster):
            yield found.metadata.name
            yield found.shoot

    def nodes(self, objects: FleetObjects, cluster: ClusterNames, now: float) -> Iterable[TreeNode]:
        for found in _clusters(objects, cluster):
            secret = objects.get(_SECRETS, found.secret.object_key, ObjectMeta)
            row = ClusterRows().row(ClusterSubject(found, secret))
            conditions = () if found.condition is None else (found.condition,)
            node = node_of(row, page=ClusterRows.page, conditions=conditions)
            yield replace(node, children=(_secret_node(found, secret, now),))


def _clusters(objects: FleetObjects, cluster: ClusterNames) -> list[GardenerCluster]:
    """Returns those with one of the names; where there is none, those whose Shoot has such a name."""
    keys = (ObjectKey(cluster.namespace, name) for name in cluster.names)
    named = [found for key in keys if (found := objects.get(_CLUSTERS, key, GardenerCluster)) is not None]
    if named:
        return named
    known = objects.all(_CLUSTERS, GardenerCluster)
    return [found for found in known if cluster.has(found.metadata.namespace, found.shoot)]


def _secret_node(cluster: GardenerCluster, secret: ObjectMeta | None, now: float) -> TreeNode:
    key = cluster.secret.object_key
    node = TreeNode(kind=SECRETS.kind, name=key.name, namespace=key.namespace)
    if secret is None:
        return replace(node, state="NotSeen", note="it does not exist, or you may not see it")
    written = secret.annotations.get(Annotation.LAST_SYNC, "")
    expires = secret.annotations.get(Annotation.EXPIRATION, "")
    ends = seconds_of(expires)
    if ends is not None and ends <= now:
        note, owner = "the kubeconfig has expired", "operator"
        return replace(
            node, standing="failed", state="Expired", note=note, owner=owner,
            step=f"`hortus rotate {cluster.metadata.name}`", written=written, expires=expires,
        )  # fmt: skip
    return replace(node, standing="well", state="Valid", written=written, expires=expires)
