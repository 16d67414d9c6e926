"""ClusterAddon: the addons of one Cluster, installed in the workload cluster."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from hortus.domains.stacks.kinds.shared import (
    READY_COLUMNS,
    Flag,
    ManagedResource,
    ReferencedObject,
    SeverityCondition,
)
from hortus.domains.stacks.names import GROUP, VERSION
from hortus.kube.objects import Resource
from hortus.schema import Atomic, Column, Fields, Kind, kind


class ClusterAddonSpec(Fields, frozen=True):
    """The Cluster, and the release whose addons it has. Controllers write all but the Cluster."""

    cluster_ref: Annotated[ReferencedObject, Atomic()]
    """The Cluster in whose workload cluster the addons are installed."""
    cluster_stack: str = ""
    """The ClusterClass of the release whose addons were applied last."""
    version: str = ""
    """Version of these addons, with dashes."""
    hook: str = ""
    """The runtime hook of Cluster API that is in progress; empty where none is."""


class AddonStage(Fields, frozen=True):
    """One stage of the hook that is in progress."""

    name: str = ""
    """The chart of the stage."""
    action: str = ""
    """apply or delete."""
    phase: str = ""
    """Pending, waitingForPreCondition, applyingOrDeleting, waitingForPostCondition or done."""


class ClusterAddonStatus(Fields, frozen=True):
    """The addons as observed."""

    ready: Flag = False
    """True once the addons are as the release of the Cluster has them."""
    resources: tuple[ManagedResource, ...] = ()
    """The objects of the addons in the workload cluster."""
    stages: tuple[AddonStage, ...] = ()
    """The stages of the hook that is in progress."""
    conditions: tuple[SeverityCondition, ...] = ()
    """Ready, which sums up the others."""


@kind(
    group=GROUP,
    version=VERSION,
    status=True,
    short_names=("caddon",),
    columns=(
        Column("Cluster", '.metadata.ownerReferences[?(@.kind=="Cluster")].name'),
        Column("Hook", ".spec.hook"),
        *READY_COLUMNS,
    ),
)
class ClusterAddon(Kind, frozen=True):
    """The addons of one Cluster. It is created with the Cluster, under the name cluster-addon-<cluster>."""

    __schema__: ClassVar[dict[str, Any]] = {"required": []}

    spec: ClusterAddonSpec
    """The Cluster, and the release whose addons it has."""
    status: ClusterAddonStatus = ClusterAddonStatus()
    """The addons as observed."""


CLUSTER_ADDONS: Final = Resource(GROUP, VERSION, "clusteraddons", "ClusterAddon")
