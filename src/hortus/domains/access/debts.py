"""The debt of a request that is released without its cluster: the objects that may be left there."""

from __future__ import annotations

from hortus.domains.access.context import AccessContext, Obstacle
from hortus.engine.applysets.inventory import decode
from hortus.engine.leftovers import Debt, items_of_inventory, member_cluster, source_of
from hortus.engine.remote import MemberIdentity


def debt_of(context: AccessContext, obstacle: Obstacle, member: MemberIdentity) -> Debt:
    """The debt for the request's inventory in that cluster."""
    access = context.object
    namespace, _, name = access.status.cluster.partition("/")
    inventory = decode("".join(f"{line}\n" for line in context.inventory))
    return Debt(
        source=source_of("ClusterAccess", access.metadata),
        reason=obstacle.reason,
        message=obstacle.message,
        items=tuple(items_of_inventory(inventory)),
        cluster=member_cluster(member, name, namespace, shoot=access.status.shoot),
        since=access.metadata.deletion_timestamp,
    )
