"""The debts of a Runtime: the infrastructure that a forced deletion leaves, and a Shoot that it may not delete."""

from __future__ import annotations

from hortus.domains.clusters import service
from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.shoots import SHOOTS
from hortus.domains.clusters.types import Runtime
from hortus.engine.leftovers import Debt, infrastructure_item, object_item, source_of
from hortus.engine.leftovers.types import LeftoverCluster, LeftoverReason

RELEASE_AFTER = 3600.0
"""Seconds after the beginning of a deletion from which a Runtime is released without a Shoot that it may not delete: a
permission that was taken back by mistake can be given again."""
_PROJECT_PREFIX = "garden-"
"""Gardener names the namespace of a project so by default."""


def infrastructure_debt(runtime: Runtime, shoot: ShootOutline, garden_namespace: str) -> Debt:
    """The debt for a Shoot whose deletion is forced. Names: Gardener, docs/usage/shoot, technical ID."""
    project = garden_namespace.removeprefix(_PROJECT_PREFIX)
    technical, provider = f"shoot--{project}--{shoot.name}", service.provider(runtime) or "the provider"
    key, metadata = service.cluster_key(runtime), runtime.metadata
    item = infrastructure_item(
        f"infrastructure of shoot {shoot.name} at {provider}",
        f"{shoot.name}/{shoot.uid}",
        look=f"in the account of the Shoot, list the machines, disks, networks, load balancers and addresses whose "
        f"name begins with {technical} or that carry the tag kubernetes.io/cluster/{technical}",
        remove="delete them there, machines and load balancers first, then disks and addresses, networks last",
    )
    return Debt(
        source=source_of("Runtime", metadata),
        reason=LeftoverReason.DELETION_FORCED,
        message=f"the deletion of shoot {shoot.name} was forced: the garden cleans up no infrastructure",
        items=(item,),
        cluster=LeftoverCluster(name=key.name, namespace=key.namespace, shoot=shoot.name),
        since=metadata.deletion_timestamp,
    )


def shoot_debt(runtime: Runtime, shoot: ShootOutline, garden_namespace: str, refusal: str) -> Debt:
    """The debt for a Shoot that the namespace of its Runtime may not delete, for the reason in `refusal`."""
    key, metadata = service.cluster_key(runtime), runtime.metadata
    return Debt(
        source=source_of("Runtime", metadata),
        reason=LeftoverReason.SHOOT_NOT_DELETED,
        message=f"the Runtime claimed shoot {shoot.name} by its id; see whose it is before you delete it: {refusal}",
        items=(object_item(SHOOTS, garden_namespace, shoot.name, where="Garden", uid=shoot.uid),),
        cluster=LeftoverCluster(name=key.name, namespace=key.namespace, shoot=shoot.name),
        since=metadata.deletion_timestamp,
    )
