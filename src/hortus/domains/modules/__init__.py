"""Modules: installs, upgrades and removes the modules of each cluster, by Kyma's modular architecture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hortus.domains import DemoFleet, Domain, LocalArtifact, LocalSetup, RbacRules, RivalLease

if TYPE_CHECKING:
    from hortus.domains import ProcessContext
    from hortus.engine.flags import Flag
    from hortus.engine.fleet import FleetView
    from hortus.engine.pages import ClusterPart, FleetPage
    from hortus.engine.rollouts.types import ChangeKind
    from hortus.kube.objects import Object, Resource
    from hortus.schema import Kind
    from hortus.terminal import CommandGroup, Connections


class _Modules(Domain):
    def kinds(self) -> Mapping[Resource, type[Kind]]:
        from hortus.domains.modules import types

        return {
            types.KYMAS: types.Kyma,
            types.MANIFESTS: types.Manifest,
            types.MODULE_CONFIGURATIONS: types.ModuleConfiguration,
            types.MODULE_RELEASE_METAS: types.ModuleReleaseMeta,
            types.MODULE_TEMPLATES: types.ModuleTemplate,
            types.WATCHERS: types.Watcher,
        }

    def change_kinds(self) -> Sequence[ChangeKind]:
        from hortus.domains.modules.kyma.changes import MODULE_CHANGE

        return (MODULE_CHANGE,)

    def rules(self) -> RbacRules:
        from hortus.domains.modules import rbac

        return RbacRules(management=rbac.CONTROL, wide=rbac.WIDE, elsewhere=rbac.ELSEWHERE, flag="modules")

    def rivals(self) -> Sequence[RivalLease]:
        from hortus.domains.modules.names import LEADER_ELECTION_ID

        return (RivalLease(LEADER_ELECTION_ID, ("modules",)),)

    def records(self) -> Sequence[Resource]:
        from hortus.domains.modules.types import MANIFESTS

        return (MANIFESTS,)

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.modules.flags import FLAGS

        return FLAGS

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.modules import own, settings
        from hortus.domains.modules.watching import settings as watching

        own.check(values)
        settings.from_flags(values)
        watching.from_flags(values)

    def served_by(self) -> str:
        return "modules"

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        return "" if values["modules"] else "--modules is off (in the chart config.modules)"

    def add_controllers(self, process: ProcessContext) -> None:
        if not self.served(process.values):
            return
        from hortus.domains.modules import composition

        composition.add_to(process)

    def pages(self) -> Sequence[FleetPage]:
        from hortus.domains.modules.pages import ModulePage

        return (ModulePage(),)

    def cluster_parts(self) -> Sequence[ClusterPart]:
        from hortus.domains.modules.pages import ModulePart

        return (ModulePart(),)

    def fleet_views(self) -> Sequence[FleetView[Any]]:
        from hortus.domains.modules.rows import KymaRows

        return (KymaRows(),)

    def aliases(self) -> Mapping[str, str]:
        return {"modules": "manifests"}

    def add_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.modules import commands

        commands.register(app, connect)

    def local_setup(self, folder: Path, project: str) -> LocalSetup:
        from hortus.domains.modules.local import local_setup

        return local_setup(folder)

    def local_artifacts(self, registry: str) -> Iterable[LocalArtifact]:
        from hortus.domains.modules.local import local_artifacts

        return local_artifacts(registry)

    def demo(self, fleet: DemoFleet) -> Iterable[tuple[Resource, Object]]:
        from hortus.domains.modules import demo

        return (*demo.catalog(), *demo.kymas(fleet))


DOMAIN = _Modules(__name__)
