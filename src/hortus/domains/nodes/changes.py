"""Configurations of a cluster's nodes as a change that a RolloutPolicy may spread over the fleet.

A ClusterProfile is the object of the change. The version that its nodes wait for or move to, the one to which they
moved, and the problem of the present move are annotations of it.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.engine.rollouts.types import MOVED, WANTS, ChangedResource, ChangeKind, ChangeKindSpec, Proposal
from hortus.schema import ObjectMeta

NODE_CHANGE: Final = "node-configuration"
"""Name of the ChangeKind."""
NODES: Final = "nodes"
"""Its only subject."""
PROBLEM: Final = "problem.fleet.hortus.dev/node-configuration"
"""Annotation of a ClusterProfile: the nodes that are not healthy with the version to which the cluster moves."""

_WANTED: Final = f"self.metadata.?annotations[?'{WANTS}{NODE_CHANGE}'].orValue('')"
_MOVED: Final = f"self.metadata.?annotations[?'{MOVED}{NODE_CHANGE}'].orValue('')"
_PROBLEM: Final = f"self.metadata.?annotations[?'{PROBLEM}'].orValue('')"

CHANGE_KIND: Final = ChangeKind(
    metadata=ObjectMeta(name=NODE_CHANGE),
    spec=ChangeKindSpec(
        resource=ChangedResource(
            group=CLUSTER_PROFILES.group, version=CLUSTER_PROFILES.version, resource=CLUSTER_PROFILES.plural
        ),
        cluster="self.metadata.name",
        subject=f"'{NODES}'",
        # The version that all nodes have; the one that fails, while it does.
        version=f"{_PROBLEM} != '' ? {_WANTED} : {_MOVED}",
        succeeded=f"{_MOVED} == to && {_PROBLEM} == ''",
        failed=f"{_PROBLEM} != ''",
        message=_PROBLEM,
    ),
)


def proposal(version: str) -> Proposal:
    """The change of a cluster's nodes to a version."""
    return Proposal(NODE_CHANGE, NODES, version)
