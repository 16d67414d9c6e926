"""Agents: the monitoring agent on every node of every cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hortus.domains import Domain, RbacRules

if TYPE_CHECKING:
    from hortus.engine.flags import Flag
    from hortus.kube.objects import Resource
    from hortus.schema import Kind


class _Agents(Domain):
    def kinds(self) -> Mapping[Resource, type[Kind]]:
        from hortus.domains.agents import types

        return {
            types.INSTANA_AGENTS: types.InstanaAgent,
            types.INSTANA_AGENTS_REMOTE: types.InstanaAgentRemote,
        }

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.agents.settings import FLAGS

        return FLAGS

    def rules(self) -> RbacRules:
        from hortus.domains.agents import rbac

        return RbacRules(management=rbac.CONTROL, wide=rbac.WIDE, flag="agents")

    def served_by(self) -> str:
        return "agents"

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        return "" if values["agents"] else "--agents is off (in the chart config.agents)"


DOMAIN = _Agents(__name__)
