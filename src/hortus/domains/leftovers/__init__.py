"""Leftovers: records what was released without being seen to be gone, and settles it when it is gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hortus.domains import Domain, LocalSetup, ProcessContext, RbacRules

if TYPE_CHECKING:
    from hortus.engine.flags import Flag
    from hortus.engine.fleet import FleetView
    from hortus.engine.pages import ClusterPart, FleetPage
    from hortus.kube.objects import Resource
    from hortus.schema import Kind
    from hortus.terminal import CommandGroup, Connections

_WEEK = 7 * 24 * 3600.0


class _Leftovers(Domain):
    needs_garden = True

    def kinds(self) -> Mapping[Resource, type[Kind]]:
        from hortus.engine.leftovers.types import LEFTOVERS, Leftover

        return {LEFTOVERS: Leftover}

    def flags(self) -> Sequence[Flag]:
        from hortus.engine.flags import Flag

        return (
            Flag("leftovers", "bool", False, "Record what is released without being seen to be gone. Needs its CRD."),
            Flag("leftovers-keep", "duration", _WEEK, "Time after which a settled Leftover is deleted."),
        )

    def rules(self) -> RbacRules:
        from hortus.domains.leftovers import rbac

        return RbacRules(management=rbac.MANAGEMENT, garden=rbac.GARDEN, fleet=rbac.FLEET, flag="leftovers")

    def served_by(self) -> str:
        return "leftovers"

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        return "" if values["leftovers"] else "--leftovers is off (in the chart config.leftovers)"

    def add_controllers(self, process: ProcessContext) -> None:
        values = process.values
        if not self.served(values):
            return
        from hortus.domains.leftovers.composition import add_controller

        add_controller(
            process.manager,
            client=process.client,
            garden=process.garden,
            garden_namespace=process.garden_namespace,
            shoots=process.shoots,
            pool=process.pool,
            kubeconfigs=process.kubeconfigs,
            fleet_namespace=values["fleet-namespace"],
            watched=process.namespace,
            keep=values["leftovers-keep"],
        )

    def pages(self) -> Sequence[FleetPage]:
        from hortus.domains.leftovers.pages import LeftoverPage

        return (LeftoverPage(),)

    def cluster_parts(self) -> Sequence[ClusterPart]:
        from hortus.domains.leftovers.pages import LeftoverPart

        return (LeftoverPart(),)

    def fleet_views(self) -> Sequence[FleetView[Any]]:
        from hortus.domains.leftovers.rows import LeftoverRows

        return (LeftoverRows(),)

    def add_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.leftovers import commands

        commands.register(app, connect)

    def local_setup(self, folder: Path, project: str) -> LocalSetup:
        return LocalSetup(flags=("--leftovers",))


DOMAIN = _Leftovers(__name__)
