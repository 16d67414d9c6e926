"""The kinds of cluster stacks: groups clusterstack.x-k8s.io and infrastructure.clusterstack.x-k8s.io, v1alpha1.

StackPolicy, of fleet.hortus.dev, is an addition that the Go operator does not know and that changes nothing for it.
"""

from __future__ import annotations

from hortus.domains.stacks.kinds.clusteraddon import (
    CLUSTER_ADDONS,
    AddonStage,
    ClusterAddon,
    ClusterAddonSpec,
    ClusterAddonStatus,
)
from hortus.domains.stacks.kinds.clusterstack import (
    CLUSTER_STACKS,
    ClusterStack,
    ClusterStackSpec,
    ClusterStackStatus,
    ReleaseSummary,
)
from hortus.domains.stacks.kinds.clusterstackrelease import (
    CLUSTER_STACK_RELEASES,
    ClusterStackRelease,
    ClusterStackReleaseSpec,
    ClusterStackReleaseStatus,
)
from hortus.domains.stacks.kinds.openstacknodeimage import (
    OPENSTACK_NODE_IMAGES,
    ImageOptions,
    OpenStackNodeImage,
    OpenStackNodeImageRelease,
    OpenStackNodeImageReleaseSpec,
)
from hortus.domains.stacks.kinds.openstackrelease import (
    OPENSTACK_RELEASE_TEMPLATES,
    OPENSTACK_RELEASES,
    OpenStackClusterStackRelease,
    OpenStackClusterStackReleaseTemplate,
)
from hortus.domains.stacks.kinds.shared import (
    IdentityReference,
    ManagedResource,
    ReferencedObject,
    SeverityCondition,
)
from hortus.domains.stacks.kinds.stackpolicy import STACK_POLICIES, StackPolicy, StackPolicySpec

__all__ = [
    "CLUSTER_ADDONS",
    "CLUSTER_STACKS",
    "CLUSTER_STACK_RELEASES",
    "OPENSTACK_NODE_IMAGES",
    "OPENSTACK_RELEASES",
    "OPENSTACK_RELEASE_TEMPLATES",
    "STACK_POLICIES",
    "AddonStage",
    "ClusterAddon",
    "ClusterAddonSpec",
    "ClusterAddonStatus",
    "ClusterStack",
    "ClusterStackRelease",
    "ClusterStackReleaseSpec",
    "ClusterStackReleaseStatus",
    "ClusterStackSpec",
    "ClusterStackStatus",
    "IdentityReference",
    "ImageOptions",
    "ManagedResource",
    "OpenStackClusterStackRelease",
    "OpenStackClusterStackReleaseTemplate",
    "OpenStackNodeImage",
    "OpenStackNodeImageRelease",
    "OpenStackNodeImageReleaseSpec",
    "ReferencedObject",
    "ReleaseSummary",
    "SeverityCondition",
    "StackPolicy",
    "StackPolicySpec",
]
