"""Rollouts: changes of many clusters, stage by stage, under policies that stop by themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hortus.domains import Domain, LocalSetup, ProcessContext, RbacRules

if TYPE_CHECKING:
    from hortus.engine.flags import Flag
    from hortus.engine.fleet import FleetView
    from hortus.engine.pages import ClusterPart, FleetPage
    from hortus.engine.rbac import Permission
    from hortus.kube.objects import Object, Resource
    from hortus.schema import Kind
    from hortus.terminal import CommandGroup, Connections


class _Rollouts(Domain):
    def kinds(self) -> Mapping[Resource, type[Kind]]:
        from hortus.engine.rollouts import types

        return {
            types.CHANGE_KINDS: types.ChangeKind,
            types.ROLLOUT_POLICIES: types.RolloutPolicy,
            types.ROLLOUTS: types.Rollout,
            types.PLACEMENT_DECISIONS: types.PlacementDecision,
        }

    def rules(self) -> RbacRules:
        from hortus.domains.rollouts import rbac

        return RbacRules(fleet=rbac.FLEET, wide=rbac.WIDE, flag="rollouts")

    def people(self) -> Mapping[str, Sequence[Permission]]:
        from hortus.domains.rollouts.rbac import APPROVER

        return {"approver": APPROVER}

    def admission_policies(self) -> Sequence[Object]:
        from hortus.domains.rollouts.approval import POLICIES

        return POLICIES

    def records(self) -> Sequence[Resource]:
        from hortus.engine.rollouts.types import PLACEMENT_DECISIONS

        return (PLACEMENT_DECISIONS,)

    def standards(self) -> Sequence[Resource]:
        return self.records()

    def flags(self) -> Sequence[Flag]:
        from hortus.engine.flags import Flag

        return (
            Flag(
                "rollouts", "bool", False, "Serve RolloutPolicies and Rollouts. Needs their CRDs and ClusterProfile's."
            ),
        )

    def served_by(self) -> str:
        return "rollouts"

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        return "" if values["rollouts"] else "--rollouts is off (in the chart config.rollouts)"

    def add_controllers(self, process: ProcessContext) -> None:
        if self.served(process.values):
            from hortus.domains.rollouts.composition import add_controllers

            add_controllers(
                process.manager,
                process.client,
                fleet_namespace=process.values["fleet-namespace"],
                watched=process.namespace,
                deputies=process.deputies,
                change_kinds=process.change_kinds,
            )

    def pages(self) -> Sequence[FleetPage]:
        from hortus.domains.rollouts.pages import RolloutPage

        return (RolloutPage(),)

    def cluster_parts(self) -> Sequence[ClusterPart]:
        from hortus.domains.rollouts.pages import RolloutPart

        return (RolloutPart(),)

    def fleet_views(self) -> Sequence[FleetView[Any]]:
        from hortus.domains.rollouts.rows import RolloutRows

        return (RolloutRows(),)

    def add_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.rollouts import commands

        commands.register(app, connect)

    def aliases(self) -> Mapping[str, str]:
        return {"rp": "rolloutpolicies", "ro": "rollouts"}

    def local_setup(self, folder: Path, project: str) -> LocalSetup:
        return LocalSetup(flags=("--rollouts",))


DOMAIN = _Rollouts(__name__)
