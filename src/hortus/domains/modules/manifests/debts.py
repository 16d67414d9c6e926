"""The debt of a Manifest that is released without its cluster: the objects of the module that may be left there."""

from __future__ import annotations

from hortus.domains.modules.manifests.context import ManifestContext
from hortus.domains.modules.manifests.synced import guessed_plural
from hortus.domains.modules.types import MANIFESTS
from hortus.engine.leftovers import Debt, member_cluster, object_item, source_of
from hortus.engine.remote import MemberIdentity
from hortus.kube.objects import Resource


def debt_of(context: ManifestContext, member: MemberIdentity, *, reason: str, message: str) -> Debt:
    """The debt for the Manifest's inventory in that cluster."""
    metadata = context.object.metadata
    items = [
        object_item(
            Resource(one.group, one.version, guessed_plural(one.kind), one.kind, bool(one.namespace)),
            one.namespace,
            one.name,
            where="Cluster",
            actor="ClusterOwner",
        )
        for one in context.synced
    ]
    return Debt(
        source=source_of(MANIFESTS.kind, metadata),
        reason=reason,
        message=message,
        items=items,
        cluster=member_cluster(member, context.kyma, metadata.namespace),
        since=metadata.deletion_timestamp,
    )
