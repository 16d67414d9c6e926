"""ClusterStackRelease: one release of a stack, with its ClusterClass and templates."""

from __future__ import annotations

from typing import Final

from hortus.domains.stacks.kinds.shared import READY_COLUMNS, Flag, ManagedResource, ObjectRef, SeverityCondition
from hortus.domains.stacks.names import GROUP, VERSION
from hortus.kube.objects import Resource
from hortus.schema import Column, Fields, Kind, kind


class ClusterStackReleaseSpec(Fields, frozen=True):
    """The parts of the release outside of this object."""

    provider_ref: ObjectRef = None
    """The provider's object for the release; none where the stack has no provider."""


class ClusterStackReleaseStatus(Fields, frozen=True):
    """The release as observed."""

    ready: Flag = False
    """True once Clusters can use the release."""
    kubernetes_version: str = ""
    """Kubernetes version of the release with its patch, such as v1.27.3."""
    resources: tuple[ManagedResource, ...] = ()
    """The objects of the release: its ClusterClass and templates."""
    conditions: tuple[SeverityCondition, ...] = ()
    """Ready, which sums up the others."""


@kind(
    group=GROUP,
    version=VERSION,
    status=True,
    short_names=("cskr",),
    columns=(Column("K8s Version", ".status.kubernetesVersion"), *READY_COLUMNS),
)
class ClusterStackRelease(Kind, frozen=True):
    """One release of a cluster stack. ClusterStacks create it under the name of the release."""

    spec: ClusterStackReleaseSpec = ClusterStackReleaseSpec()
    """The parts of the release outside of this object."""
    status: ClusterStackReleaseStatus = ClusterStackReleaseStatus()
    """The release as observed."""


CLUSTER_STACK_RELEASES: Final = Resource(GROUP, VERSION, "clusterstackreleases", "ClusterStackRelease")
