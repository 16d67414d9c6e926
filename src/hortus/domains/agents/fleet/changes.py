"""Versions of AgentConfigurations as changes that a RolloutPolicy may spread over a fleet.

An AgentPlacement is the object of the change. One that waits has the version that it waits for in an annotation.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.agents.fleet.reasons import FAILURES
from hortus.domains.agents.types import AGENT_PLACEMENTS, AgentPlacement
from hortus.engine.rollouts.types import ChangedResource, ChangeKind, ChangeKindSpec, Proposal
from hortus.schema import ObjectMeta

AGENT_CHANGE: Final = "agent"
"""Name of the ChangeKind. Its subjects are the names of AgentConfigurations."""
_READY: Final = "self.?status.?conditions.orValue([]).filter(c, c.type == 'Ready')"
_INSTALLED: Final = "self.?status.?version.orValue('')"

CHANGE_KIND: Final = ChangeKind(
    metadata=ObjectMeta(name=AGENT_CHANGE),
    spec=ChangeKindSpec(
        resource=ChangedResource(
            group=AGENT_PLACEMENTS.group, version=AGENT_PLACEMENTS.version, resource=AGENT_PLACEMENTS.plural
        ),
        cluster="self.?spec.?cluster.orValue('')",
        subject="self.?spec.?configuration.orValue('')",
        # The version that is installed: the wanted one is in the spec as soon as the configuration changes.
        version=_INSTALLED,
        succeeded=f"{_READY}.exists(c, c.status == 'True') && {_INSTALLED} == self.?spec.?version.orValue('')",
        failed=f"{_READY}.exists(c, c.reason in {sorted(FAILURES)!r})",
        message=f"{_READY}.map(c, c.?message.orValue('')).join(' ')",
    ),
)


def proposal(placement: AgentPlacement) -> Proposal:
    """The change that a cluster is about to make."""
    return Proposal(AGENT_CHANGE, placement.spec.configuration, placement.spec.version)
