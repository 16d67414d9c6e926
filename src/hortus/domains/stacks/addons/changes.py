"""Releases of cluster stacks as changes that a RolloutPolicy may spread over a fleet.

A ClusterAddon is the object of the change. One that waits has the class that it waits for in an annotation.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.stacks.names import parse_either
from hortus.domains.stacks.types import CLUSTER_ADDONS
from hortus.engine.rollouts.types import ChangedResource, ChangeKind, ChangeKindSpec, Proposal
from hortus.schema import ObjectMeta

STACK: Final = "cluster-stack"
"""Name of the ChangeKind. Its subjects are provider and name of a stack, such as docker-ferrol."""
_APPLIED: Final = "self.?status.?conditions.orValue([]).exists(c, c.type == 'HelmChartApplied' && c.status == 'True')"
_CLASS: Final = "self.?spec.?clusterStack.orValue('')"

STACK_CHANGE: Final = ChangeKind(
    metadata=ObjectMeta(name=STACK),
    spec=ChangeKindSpec(
        resource=ChangedResource(
            group=CLUSTER_ADDONS.group, version=CLUSTER_ADDONS.version, resource=CLUSTER_ADDONS.plural
        ),
        cluster="self.spec.clusterRef.?name.orValue('')",
        subject=f"{_CLASS}.split('-').size() < 2 ? '' : {_CLASS}.split('-')[0] + '-' + {_CLASS}.split('-')[1]",
        version=_CLASS,
        succeeded=f"self.?status.?ready.orValue(false) && {_APPLIED} && self.?spec.?hook.orValue('') == ''",
        failed="self.?status.?conditions.orValue([])"
        ".exists(c, c.status == 'False' && c.?severity.orValue('') == 'Error')",
        message="self.?status.?conditions.orValue([]).filter(c, c.type == 'Ready').map(c, c.?message.orValue(''))"
        ".join(' ')",
    ),
)


def proposal(before: str, after: str) -> Proposal | None:
    """The change from one class to another; None where a class is of no cluster stack."""
    old, new = parse_either(before), parse_either(after)
    if old is None or new is None or old == new:
        return None
    return Proposal(STACK, f"{new.provider}-{new.stack}", after)
