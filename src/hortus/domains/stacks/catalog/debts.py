"""The debt of a ClusterStackRelease that is released without objects that its namespace may not delete."""

from __future__ import annotations

from hortus.domains.stacks.types import CLUSTER_STACK_RELEASES
from hortus.engine import metadata_of
from hortus.engine.applysets import Inventory
from hortus.engine.leftovers import Debt, object_item, source_of
from hortus.engine.leftovers.types import LeftoverReason
from hortus.kube.objects import Object


def debt_of(release: Object, left: Inventory, message: str) -> Debt:
    """The debt for the objects on the management cluster that are left."""
    metadata = metadata_of(release)
    return Debt(
        source=source_of(CLUSTER_STACK_RELEASES.kind, metadata),
        reason=LeftoverReason.NOT_PRUNED,
        message=message,
        items=[
            object_item(entry.resource(member), member.namespace, member.name, where="Management", uid=entry.uid)
            for member, entry in sorted(left.items())
        ],
        since=metadata.deletion_timestamp,
    )
