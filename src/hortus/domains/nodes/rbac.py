"""The RBAC rules of roll-outs over nodes. Inside the clusters the kubeconfigs of the fleet decide."""

from __future__ import annotations

from typing import Final

from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.engine.rbac import Permission

FLEET: Final = (
    Permission(
        CLUSTER_PROFILES.group,
        (CLUSTER_PROFILES.plural,),
        ("list", "watch", "patch"),
        "reports configurations of nodes that wait or fail",
    ),
)
"""In the namespace of the fleet."""

WIDE: Final = (
    Permission(
        CLUSTER_PROFILES.group, (CLUSTER_PROFILES.plural,), ("list", "watch"), "has rollouts find their objects"
    ),
)
"""In all namespaces, where rollouts look for the objects of a ChangeKind."""
