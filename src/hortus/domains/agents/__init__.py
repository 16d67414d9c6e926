"""Agents: puts the monitoring agent on every node of every cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hortus.domains import Domain, LocalSetup, NamespaceRules, RbacRules, RivalLease, ValidatingWebhook

if TYPE_CHECKING:
    from hortus.domains import ProcessContext
    from hortus.engine.flags import Flag
    from hortus.engine.fleet import FleetView
    from hortus.engine.pages import ClusterPart, FleetPage
    from hortus.engine.rollouts.types import ChangeKind
    from hortus.kube.objects import Resource
    from hortus.schema import Kind
    from hortus.terminal import CommandGroup, Connections


class _Agents(Domain):
    def kinds(self) -> Mapping[Resource, type[Kind]]:
        from hortus.domains.agents import types

        return {
            types.AGENT_CONFIGURATIONS: types.AgentConfiguration,
            types.AGENT_PLACEMENTS: types.AgentPlacement,
            types.INSTANA_AGENTS: types.InstanaAgent,
            types.INSTANA_AGENTS_REMOTE: types.InstanaAgentRemote,
        }

    def records(self) -> Sequence[Resource]:
        from hortus.domains.agents.types import AGENT_PLACEMENTS

        return (AGENT_PLACEMENTS,)

    def powerful(self) -> Sequence[Resource]:
        from hortus.domains.agents.types import AGENT_CONFIGURATIONS, INSTANA_AGENTS

        return (INSTANA_AGENTS, AGENT_CONFIGURATIONS)

    def rivals(self) -> Sequence[RivalLease]:
        from hortus.domains.agents.names import OPERATOR_LEASE

        return (RivalLease(OPERATOR_LEASE, ("agents",)),)

    def change_kinds(self) -> Sequence[ChangeKind]:
        from hortus.domains.agents.fleet.changes import CHANGE_KIND

        return (CHANGE_KIND,)

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.agents import settings
        from hortus.domains.agents.operating.settings import operating_settings

        settings.fleet_settings(values)
        operating_settings(values)

    def webhooks(self) -> Sequence[ValidatingWebhook]:
        from hortus.domains.agents.validation.registration import AGENT_WEBHOOKS

        return AGENT_WEBHOOKS

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.agents.operating.settings import OPERATING_FLAGS
        from hortus.domains.agents.settings import FLAGS

        return (*FLAGS, *OPERATING_FLAGS)

    def rules(self) -> RbacRules:
        from hortus.domains.agents import rbac
        from hortus.domains.agents.builders.etcd import SOURCE_NAMESPACE

        etcd = NamespaceRules(rbac.ETCD, namespace_flag="", flag="agents-etcd-namespaces", namespace=SOURCE_NAMESPACE)
        return RbacRules(management=rbac.CONTROL, wide=rbac.WIDE, fleet=rbac.FLEET, elsewhere=(etcd,), flag="agents")

    def served_by(self) -> str:
        return "agents"

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        return "" if values["agents"] else "--agents is off (in the chart config.agents)"

    def add_controllers(self, process: ProcessContext) -> None:
        if not self.served(process.values):
            return
        from hortus.domains.agents import composition

        composition.add_to(process)

    def pages(self) -> Sequence[FleetPage]:
        from hortus.domains.agents.pages import AgentPage

        return (AgentPage(),)

    def cluster_parts(self) -> Sequence[ClusterPart]:
        from hortus.domains.agents.pages import PlacementPart

        return (PlacementPart(),)

    def fleet_views(self) -> Sequence[FleetView[Any]]:
        from hortus.domains.agents.fleet.rows import PlacementRows

        return (PlacementRows(),)

    def add_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.agents import commands
        from hortus.domains.agents.fleet import commands as fleet

        fleet.register(app, connect)
        commands.register(app, connect)

    def local_setup(self, folder: Path, project: str) -> LocalSetup:
        return LocalSetup(flags=("--agents",))


DOMAIN = _Agents(__name__)
