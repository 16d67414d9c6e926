"""Access: a ClusterAccess becomes a Secret with a kubeconfig that may do what was asked for and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hortus.domains import DemoFleet, Domain, LocalSetup, ProcessContext, RbacRules

if TYPE_CHECKING:
    from hortus.engine.flags import Flag
    from hortus.engine.fleet import FleetView
    from hortus.engine.pages import ClusterPart, FleetPage
    from hortus.kube.objects import Object, Resource
    from hortus.schema import Kind
    from hortus.terminal import CommandGroup, Connections


class _Access(Domain):
    def kinds(self) -> Mapping[Resource, type[Kind]]:
        from hortus.domains.access.types import CLUSTER_ACCESSES, ClusterAccess

        return {CLUSTER_ACCESSES: ClusterAccess}

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.access.settings import FLAGS

        return FLAGS

    def rules(self) -> RbacRules:
        from hortus.domains.access import rbac

        return RbacRules(management=rbac.MANAGEMENT, wide=rbac.WIDE)

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.access import settings

        settings.from_flags(values)

    def served_by(self) -> str:
        return "cluster-access"

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        return "" if values["cluster-access"] else "--cluster-access is off (in the chart config.cluster-access)"

    def add_controllers(self, process: ProcessContext) -> None:
        if not self.served(process.values):
            return
        from hortus.domains.access import composition, settings

        composition.add_controller(
            process.manager,
            client=process.client,
            pool=process.pool,
            kubeconfigs=process.kubeconfigs,
            deputies=process.deputies,
            leftovers=process.leftovers,
            settings=settings.from_flags(process.values),
        )

    def pages(self) -> Sequence[FleetPage]:
        from hortus.domains.access.pages import AccessPage

        return (AccessPage(),)

    def cluster_parts(self) -> Sequence[ClusterPart]:
        from hortus.domains.access.pages import AccessPart

        return (AccessPart(),)

    def fleet_views(self) -> Sequence[FleetView[Any]]:
        from hortus.domains.access.rows import AccessRows

        return (AccessRows(),)

    def add_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.access import commands

        commands.register(app, connect)

    def local_setup(self, folder: Path, project: str) -> LocalSetup:
        return LocalSetup(flags=("--cluster-access",))

    def demo(self, fleet: DemoFleet) -> Iterable[tuple[Resource, Object]]:
        from hortus.domains.access.demo import accesses

        return accesses(fleet)


DOMAIN = _Access(__name__)
