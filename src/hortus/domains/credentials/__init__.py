"""Credentials: GardenerClusters become Secrets with kubeconfigs that work and rotate by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hortus.domains import DemoFleet, Domain, ProcessContext, RbacRules, Reload

if TYPE_CHECKING:
    from hortus.engine.flags import Flag
    from hortus.engine.fleet import FleetView, WideColumns
    from hortus.engine.pages import ClusterPart
    from hortus.engine.rollouts.types import ChangeKind
    from hortus.kube.objects import Object, Resource
    from hortus.schema import Kind
    from hortus.terminal import CommandGroup, Connections


class _Credentials(Domain):
    needs_garden = True

    def kinds(self) -> Mapping[Resource, type[Kind]]:
        from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster

        return {GARDENER_CLUSTERS: GardenerCluster}

    def change_kinds(self) -> Sequence[ChangeKind]:
        from hortus.domains.credentials.changes import ROTATION

        return (ROTATION,)

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.credentials.settings import FLAGS

        return FLAGS

    def rules(self) -> RbacRules:
        from hortus.domains.credentials import rbac

        return RbacRules(management=rbac.MANAGEMENT, wide=rbac.WIDE, garden=rbac.GARDEN)

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.credentials.settings import Settings

        Settings.from_flags(values)

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        return "" if values["gardener-kubeconfig-path"] else "--gardener-kubeconfig-path is empty: there is no garden"

    def kubeconfig_selector(self) -> str:
        from hortus.domains.credentials.types import SECRET_SELECTOR

        return SECRET_SELECTOR

    def shoot_outline(self, shoot: Object) -> Object:
        from hortus.domains.credentials.shoots import outline

        return outline(shoot)

    def add_controllers(self, process: ProcessContext) -> Reload | None:
        if not self.served(process.values):
            return None
        from hortus.domains.credentials.composition import add_to

        return add_to(process)

    def cluster_parts(self) -> Sequence[ClusterPart]:
        from hortus.domains.credentials.pages import CredentialPart

        return (CredentialPart(),)

    def fleet_views(self) -> Sequence[FleetView[Any]]:
        from hortus.domains.credentials.rows import ClusterRows

        return (ClusterRows(),)

    def wide_columns(self) -> Mapping[Resource, WideColumns]:
        from hortus.domains.credentials.rows import WIDE

        return WIDE

    def add_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.credentials import commands

        commands.register(app, connect)

    def aliases(self) -> Mapping[str, str]:
        clusters = "gardenerclusters"
        return {"clusters": clusters, "cluster": clusters, "gc": clusters}

    def demo(self, fleet: DemoFleet) -> Iterable[tuple[Resource, Object]]:
        from hortus.domains.credentials.types import HOME
        from hortus.kube.objects import Resource

        namespaces = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
        return ((namespaces, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}),)


DOMAIN = _Credentials(__name__)
