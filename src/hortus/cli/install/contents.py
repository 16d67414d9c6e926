"""What an installation consists of: the kinds it serves and the rights its processes need, gathered from the domains.

The chart's CRDs and roles are generated from here; see `tools/chart.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from hortus.domains.access import alerts as access_alerts
from hortus.domains.access import rights as access
from hortus.domains.access.types import CLUSTER_ACCESSES, ClusterAccess
from hortus.domains.canary import alerts as canary_alerts
from hortus.domains.canary import boards as canary_boards
from hortus.domains.canary import rights as canary
from hortus.domains.clusters import alerts as cluster_alerts
from hortus.domains.clusters import boards as cluster_boards
from hortus.domains.clusters import rights as clusters
from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.credentials import alerts as credential_alerts
from hortus.domains.credentials import boards as credential_boards
from hortus.domains.credentials import rights as credentials
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.engine.observing import Alert, Board, own, own_board
from hortus.engine.rights import EVENTS, LEASES, SHARDS, Right
from hortus.kube.objects import Resource
from hortus.schema import Kind

KINDS: Mapping[Resource, type[Kind]] = {
    GARDENER_CLUSTERS: GardenerCluster,
    RUNTIMES: Runtime,
    CLUSTER_ACCESSES: ClusterAccess,
}
"""What has a CRD on the management cluster."""

MANAGEMENT: tuple[Right, ...] = (*credentials.MANAGEMENT, *clusters.MANAGEMENT, *access.MANAGEMENT, EVENTS)
"""On the management cluster, in the watched namespace."""

CANARY: tuple[Right, ...] = canary.MANAGEMENT
"""On the management cluster, in the watched namespace, where there is a canary."""

REPLICAS: tuple[Right, ...] = (LEASES,)
"""On the management cluster, in the namespace where Hortus runs."""

SHARDING: tuple[Right, ...] = (SHARDS,)
"""The same where replicas share the objects instead of electing one."""

GARDEN: tuple[Right, ...] = (*credentials.GARDEN, *clusters.GARDEN)
"""In the garden, in the project's namespace."""

GARDEN_WIDE: tuple[Right, ...] = clusters.GARDEN_WIDE
"""In the garden, everywhere."""

_READ = ("get", "list", "watch")
_WRITE = ("create", "update", "patch", "delete", "deletecollection")

PEOPLE_VIEW: tuple[Right, ...] = tuple(
    Right(resource.group, (resource.plural, f"{resource.plural}/status"), _READ, "for people who look")
    for resource in KINDS
)
PEOPLE_EDIT: tuple[Right, ...] = tuple(
    Right(resource.group, (resource.plural,), _WRITE, "for people who change") for resource in KINDS
)

ALERTS: tuple[tuple[str, tuple[Alert, ...]], ...] = (
    ("engine", own.ALERTS),
    ("credentials", credential_alerts.ALERTS),
    ("clusters", cluster_alerts.ALERTS),
    ("access", access_alerts.ALERTS),
    ("canary", canary_alerts.ALERTS),
)
"""By the part of the program whose metrics they read."""

BOARDS: tuple[Board, ...] = (own_board.BOARD, credential_boards.BOARD, cluster_boards.BOARD, canary_boards.BOARD)
