"""Inventory: one ClusterProfile for each cluster that a source names, with labels, conditions and access."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hortus.domains import DemoFleet, Domain, LocalSetup, ProcessContext, RbacRules

if TYPE_CHECKING:
    from hortus.engine.flags import Flag
    from hortus.engine.fleet import FleetView
    from hortus.engine.pages import ClusterPart
    from hortus.kube.objects import Object, Resource
    from hortus.schema import Kind
    from hortus.terminal import CommandGroup, Connections


class _Inventory(Domain):
    needs_garden = True

    def kinds(self) -> Mapping[Resource, type[Kind]]:
        from hortus.domains.inventory.types import CLUSTER_PROFILES, ClusterProfile

        return {CLUSTER_PROFILES: ClusterProfile}

    def rules(self) -> RbacRules:
        from hortus.domains.inventory import rbac

        return RbacRules(management=rbac.SOURCES, fleet=rbac.FLEET, flag="inventory")

    def records(self) -> Sequence[Resource]:
        from hortus.domains.inventory.types import CLUSTER_PROFILES

        return (CLUSTER_PROFILES,)

    def standards(self) -> Sequence[Resource]:
        return self.records()

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.inventory.settings import FLAGS

        return FLAGS

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.inventory import settings

        settings.from_flags(values)

    def served_by(self) -> str:
        return "inventory"

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        return "" if values["inventory"] else "--inventory is off (in the chart config.inventory)"

    def shoot_outline(self, shoot: Object) -> Object:
        from hortus.domains.inventory.shoots import outline

        return outline(shoot)

    def add_controllers(self, process: ProcessContext) -> None:
        if not self.served(process.values):
            return
        from hortus.domains.inventory import composition, settings

        composition.add_controller(
            process.manager,
            client=process.client,
            pool=process.pool,
            kubeconfigs=process.kubeconfigs,
            shoots=process.shoots,
            garden_namespace=process.garden_namespace,
            watched=process.namespace,
            deputies=process.deputies,
            settings=settings.from_flags(process.values),
        )

    def add_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.inventory import commands

        commands.register(app, connect)

    def cluster_parts(self) -> Sequence[ClusterPart]:
        from hortus.domains.inventory.pages import ProfileNodes

        return (ProfileNodes(),)

    def fleet_views(self) -> Sequence[FleetView[Any]]:
        from hortus.domains.inventory.rows import ProfileRows

        return (ProfileRows(),)

    def local_setup(self, folder: Path, project: str) -> LocalSetup:
        return LocalSetup(flags=("--inventory",))

    def demo(self, fleet: DemoFleet) -> Iterable[tuple[Resource, Object]]:
        from hortus.domains.inventory.demo import namespaces

        return namespaces()


DOMAIN = _Inventory(__name__)
