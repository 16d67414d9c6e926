"""Clusters: a Runtime becomes a Gardener Shoot that is connected, equipped, changed, suspended and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hortus.domains import DemoFleet, Domain, LocalSetup, ProcessContext, RbacRules

if TYPE_CHECKING:
    from hortus.engine.flags import Flag
    from hortus.engine.fleet import FleetView, WideColumns
    from hortus.engine.pages import ClusterPart
    from hortus.engine.rollouts.types import ChangeKind
    from hortus.kube.objects import Object, Resource
    from hortus.schema import Kind
    from hortus.terminal import CommandGroup, Connections


class _Clusters(Domain):
    needs_garden = True

    def kinds(self) -> Mapping[Resource, type[Kind]]:
        from hortus.domains.clusters.types import RUNTIMES, Runtime

        return {RUNTIMES: Runtime}

    def change_kinds(self) -> Sequence[ChangeKind]:
        from hortus.domains.clusters.changes import CHANGE_KINDS

        return CHANGE_KINDS

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.clusters.settings import FLAGS

        return FLAGS

    def rules(self) -> RbacRules:
        from hortus.domains.clusters import rbac

        return RbacRules(management=rbac.MANAGEMENT, wide=rbac.WIDE, garden=rbac.GARDEN, garden_wide=rbac.GARDEN_WIDE)

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.clusters import settings

        if settings.served(values):
            settings.from_flags(values)

    def served_by(self) -> str:
        return "converter-config-filepath"

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        from hortus.domains.clusters import settings

        if settings.served(values):
            return ""
        path = values["converter-config-filepath"]
        return (
            f"there is no converter configuration at {path} (--converter-config-filepath; in the chart "
            "runtimes.converterConfigMap)"
        )

    def shoot_outline(self, shoot: Object) -> Object:
        from hortus.domains.clusters.outline import outline

        return outline(shoot)

    def add_controllers(self, process: ProcessContext) -> None:
        from hortus.domains.clusters import composition

        composition.add_to(process)

    def cluster_parts(self) -> Sequence[ClusterPart]:
        from hortus.domains.clusters.pages import RuntimePart

        return (RuntimePart(),)

    def fleet_views(self) -> Sequence[FleetView[Any]]:
        from hortus.domains.clusters.rows import RuntimeRows

        return (RuntimeRows(),)

    def wide_columns(self) -> Mapping[Resource, WideColumns]:
        from hortus.domains.clusters.rows import WIDE

        return WIDE

    def add_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.clusters import commands

        commands.register(app, connect)

    def local_setup(self, folder: Path, project: str) -> LocalSetup:
        from hortus.domains.clusters.local import local_setup

        return local_setup(folder, project)

    def demo(self, fleet: DemoFleet) -> Iterable[tuple[Resource, Object]]:
        from hortus.domains.clusters.demo import runtimes

        return runtimes(fleet)


DOMAIN = _Clusters(__name__)
