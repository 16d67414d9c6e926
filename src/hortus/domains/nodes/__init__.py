"""Nodes: configurations of nodes reach the clusters of the fleet, and the nodes of each, in steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hortus.domains import Domain, ProcessContext, RbacRules

if TYPE_CHECKING:
    from hortus.engine.flags import Flag
    from hortus.engine.rollouts.types import ChangeKind


class _Nodes(Domain):
    def flags(self) -> Sequence[Flag]:
        from hortus.domains.nodes.settings import FLAGS

        return FLAGS

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.nodes.settings import node_settings

        node_settings(values)

    def change_kinds(self) -> Sequence[ChangeKind]:
        from hortus.domains.nodes.changes import CHANGE_KIND

        return (CHANGE_KIND,)

    def rules(self) -> RbacRules:
        from hortus.domains.nodes import rbac

        return RbacRules(fleet=rbac.FLEET, wide=rbac.WIDE, flag="node-rollouts")

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        return "" if values["node-rollouts"] else "--node-rollouts is off (in the chart config.node-rollouts)"

    def add_controllers(self, process: ProcessContext) -> None:
        if not self.served(process.values):
            return
        from hortus.domains.nodes.composition import add_controller
        from hortus.domains.nodes.settings import node_settings

        add_controller(
            process.manager,
            client=process.client,
            pool=process.pool,
            gate=process.gate,
            namespace=process.values["fleet-namespace"],
            settings=node_settings(process.values),
        )


DOMAIN = _Nodes(__name__)
