"""ClusterAccesses in the dashboard: kubeconfigs with limited permissions, their clients and their ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hortus.domains.access.rows import AccessRows, AccessSubject
from hortus.domains.access.types import CLUSTER_ACCESSES, ClusterAccess
from hortus.engine.fleet import FleetKind, FleetObjects, reading
from hortus.engine.pages import (
    Cell,
    ClusterNames,
    ClusterPart,
    FactList,
    FleetPage,
    Item,
    ItemKey,
    TimeCell,
    TreeNode,
    is_at,
    item_of,
    node_of,
)

_ACCESSES: Final = FleetKind(CLUSTER_ACCESSES, reading(ClusterAccess))


class AccessPage(FleetPage):
    """Each ClusterAccess as a row."""

    name = "access"
    title = "Access"
    order = 50
    intro = "Kubeconfigs that clients have, each with the permissions that were asked for."
    kinds = (_ACCESSES,)

    def item(self, objects: FleetObjects, key: ItemKey, now: float) -> Item | None:
        known = objects.all(_ACCESSES, ClusterAccess)
        access = next((one for one in known if is_at(key, CLUSTER_ACCESSES, one.metadata)), None)
        if access is None:
            return None
        facts: list[tuple[str, Cell]] = [
            ("Client", access.spec.client),
            ("Cluster", access.status.cluster),
            ("Account in the cluster", access.status.service_account),
            ("Issued", TimeCell(access.status.issued_at or "")),
            ("Expires", TimeCell(access.status.expires_at or "")),
        ]
        return item_of(_node(access), FactList("Access", facts))


class AccessPart(ClusterPart):
    """The accesses to a cluster."""

    kinds = (_ACCESSES,)
    order = 55

    def nodes(self, objects: FleetObjects, cluster: ClusterNames, now: float) -> Iterable[TreeNode]:
        for access in objects.all(_ACCESSES, ClusterAccess):
            if access.status.cluster.rpartition("/")[2] in cluster.names or access.status.shoot in cluster.names:
                yield _node(access)


def _node(access: ClusterAccess) -> TreeNode:
    row = AccessRows().row(AccessSubject(access))
    return node_of(row, page=AccessRows.page, conditions=access.status.conditions)
