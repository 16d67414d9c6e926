"""The power that authors of cluster stacks have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hortus.domains.stacks.types import (
    CLUSTER_ADDONS,
    CLUSTER_STACK_RELEASES,
    CLUSTER_STACKS,
    OPENSTACK_NODE_IMAGES,
    OPENSTACK_RELEASE_TEMPLATES,
    OPENSTACK_RELEASES,
    STACK_POLICIES,
)
from hortus.engine.powers import Power
from hortus.kube.objects import Resource

_RELEASES: Final = Power(
    "The objects of a release of the operator's source, wherever it puts them.",
    "Those in its namespace; others, and roles, as far as the deputy may write them.",
)
_CLOUDS: Final = Power(
    "Images in the OpenStack cloud of the Secret that it names.", "The same where the deputy may get that Secret."
)
POWERS: Final[Mapping[Resource, Power]] = {
    CLUSTER_STACKS: _RELEASES,
    CLUSTER_STACK_RELEASES: _RELEASES,
    CLUSTER_ADDONS: Power(
        "The addons of its release in the cluster that it names, with all permissions there.",
        "The same where the deputy may get the Secret `<cluster>-kubeconfig`.",
    ),
    OPENSTACK_RELEASES: _CLOUDS,
    OPENSTACK_NODE_IMAGES: _CLOUDS,
    OPENSTACK_RELEASE_TEMPLATES: Power("Nothing by itself: releases copy it.", "Nothing."),
    STACK_POLICIES: Power("The versions of cluster stacks that Clusters of its namespace may take.", "The same."),
}
