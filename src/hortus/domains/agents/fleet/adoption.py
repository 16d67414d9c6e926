"""The decision about objects that a cluster of the fleet has already under the names of an agent's.

The author of an AgentConfiguration chooses these names; so nothing that he writes can give him an object. Taken over is
what an operator made in the cluster for the very InstanaAgent that the configuration replaces, and what the owner of
an object grants to the configuration. A namespace that is there serves as it is.
"""

from __future__ import annotations

from hortus.domains.agents.names import GROUP
from hortus.domains.agents.ownership import controller_in, made_for, mark_of
from hortus.domains.agents.types import INSTANA_AGENTS, AgentPlacement
from hortus.engine.applysets import AdoptionClaim, FoundObjects, GrantedAdoption, Member
from hortus.engine.applysets.adoption import is_namespace
from hortus.engine.applysets.wanted import ROLES
from hortus.engine.typed import metadata_of
from hortus.kube.objects import Object


class MemberAdoption:
    """Takes over for one AgentPlacement."""

    def __init__(self, placement: AgentPlacement) -> None:
        spec = placement.spec
        self._name, self._namespace = spec.agent_name, spec.agent_namespace
        self._granted = GrantedAdoption(f"AgentConfiguration {placement.metadata.namespace}/{spec.configuration}")
        self.remedy = self._granted.remedy

    def claim(self, member: Member, live: Object, owner: str, found: FoundObjects) -> AdoptionClaim:
        if is_namespace(member):
            return AdoptionClaim.USED
        if owner or not self._may_be_orphaned(live):
            return AdoptionClaim.NONE
        binding = found.get(member._replace(kind=f"{member.kind}Binding")) if member.kind in ROLES else None
        if made_for(live, self._name, self._namespace, binding):
            return AdoptionClaim.OURS
        return self._granted.claim(member, live, owner, found)

    def _may_be_orphaned(self, live: Object) -> bool:
        """Reports whether the InstanaAgent, which is known to be gone, was the last to have an object, or nobody."""
        if mark := mark_of(live):
            return mark.startswith(f"{INSTANA_AGENTS.kind} {self._namespace}/{self._name} (uid ")
        controller = controller_in(metadata_of(live))
        if controller is None:
            return True
        group = controller.api_version.rpartition("/")[0]
        return (group, controller.kind, controller.name) == (GROUP, INSTANA_AGENTS.kind, self._name)
