"""The debt of a request that is released without its cluster: the objects that may be left there."""

from __future__ import annotations

from hortus.domains.access.context import AccessContext, Obstacle
from hortus.engine.applysets.inventory import decode
from hortus.engine.leftovers import Debt, items_of_inventory
from hortus.engine.leftovers.types import LeftoverCluster, LeftoverSource


def debt_of(context: AccessContext, obstacle: Obstacle, *, identity: str) -> Debt:
    """The debt for the request's inventory. `identity` is the uid of the cluster, empty when that is not known."""
    access = context.object
    namespace, _, name = access.status.cluster.partition("/")
    inventory = decode("".join(f"{line}\n" for line in context.inventory))
    return Debt(
        source=LeftoverSource(
            kind="ClusterAccess",
            name=access.metadata.name,
            namespace=access.metadata.namespace,
            uid=access.metadata.uid,
        ),
        reason=obstacle.reason,
        message=obstacle.message,
        items=tuple(items_of_inventory(inventory)),
        cluster=LeftoverCluster(name=name, namespace=namespace, shoot=access.status.shoot, identity=identity),
        since=access.metadata.deletion_timestamp,
    )
