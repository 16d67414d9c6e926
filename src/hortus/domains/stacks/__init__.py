"""Stacks: releases of cluster stacks, their ClusterClasses, and the addons of the Clusters that use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hortus.domains import (
    DemoFleet,
    Domain,
    LocalArtifact,
    LocalSetup,
    NamespaceRules,
    RbacRules,
    RivalLease,
    ValidatingWebhook,
)

if TYPE_CHECKING:
    from hortus.domains import ProcessContext
    from hortus.engine.flags import Flag
    from hortus.engine.fleet import FleetView
    from hortus.engine.pages import ClusterPart, FleetPage
    from hortus.engine.rbac import Permission
    from hortus.engine.rollouts.types import ChangeKind
    from hortus.kube.objects import Object, Resource
    from hortus.schema import Kind
    from hortus.terminal import CommandGroup, Connections


class _Stacks(Domain):
    def kinds(self) -> Mapping[Resource, type[Kind]]:
        from hortus.domains.stacks import types

        return {
            types.CLUSTER_STACKS: types.ClusterStack,
            types.CLUSTER_STACK_RELEASES: types.ClusterStackRelease,
            types.CLUSTER_ADDONS: types.ClusterAddon,
            types.OPENSTACK_RELEASES: types.OpenStackClusterStackRelease,
            types.OPENSTACK_RELEASE_TEMPLATES: types.OpenStackClusterStackReleaseTemplate,
            types.OPENSTACK_NODE_IMAGES: types.OpenStackNodeImageRelease,
            types.STACK_POLICIES: types.StackPolicy,
        }

    def change_kinds(self) -> Sequence[ChangeKind]:
        from hortus.domains.stacks.addons.changes import STACK_CHANGE

        return (STACK_CHANGE,)

    def records(self) -> Sequence[Resource]:
        from hortus.domains.stacks.types import (
            CLUSTER_ADDONS,
            CLUSTER_STACK_RELEASES,
            OPENSTACK_NODE_IMAGES,
            OPENSTACK_RELEASES,
        )

        return CLUSTER_ADDONS, CLUSTER_STACK_RELEASES, OPENSTACK_NODE_IMAGES, OPENSTACK_RELEASES

    def rivals(self) -> Sequence[RivalLease]:
        from hortus.domains.stacks.names import GROUP

        return (
            RivalLease(GROUP, ("stacks",)),
            RivalLease(f"openstack.provider.{GROUP}", ("stacks", "openstack-node-images")),
        )

    def webhooks(self) -> Sequence[ValidatingWebhook]:
        from hortus.domains.stacks.admission.registration import WEBHOOKS

        return WEBHOOKS

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.stacks.flux import settings as flux
        from hortus.domains.stacks.hooks import settings as hooks
        from hortus.domains.stacks.openstack.settings import OPENSTACK_FLAGS
        from hortus.domains.stacks.settings import FLAGS

        return (*FLAGS, *hooks.FLAGS, *flux.FLAGS, *OPENSTACK_FLAGS)

    def rules(self) -> RbacRules:
        from hortus.domains.stacks import rbac

        return RbacRules(
            management=rbac.CONTROL,
            wide=rbac.WIDE,
            elsewhere=(NamespaceRules(rbac.HOOKS, namespace_flag="hook-namespace", flag="stacks"),),
            flag="stacks",
        )

    def people(self) -> Mapping[str, Sequence[Permission]]:
        from hortus.domains.stacks import rbac

        return {"stack-provider": rbac.PROVIDER, "stack-catalog": rbac.CATALOG, "stack-user": rbac.USER}

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.stacks import settings
        from hortus.domains.stacks.flux import settings as flux
        from hortus.domains.stacks.hooks import settings as hooks
        from hortus.domains.stacks.openstack.settings import openstack_settings

        settings.from_flags(values)
        hooks.from_flags(values)
        flux.from_flags(values)
        openstack_settings(values)

    def served_by(self) -> str:
        return "stacks"

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        return "" if values["stacks"] else "--stacks is off (in the chart config.stacks)"

    def pages(self) -> Sequence[FleetPage]:
        from hortus.domains.stacks.pages import StackPage

        return (StackPage(),)

    def cluster_parts(self) -> Sequence[ClusterPart]:
        from hortus.domains.stacks.pages import AddonPart

        return (AddonPart(),)

    def fleet_views(self) -> Sequence[FleetView[Any]]:
        from hortus.domains.stacks.rows import AddonRows, ReleaseRows, StackRows

        return StackRows(), ReleaseRows(), AddonRows()

    def add_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.stacks import commands

        commands.register(app, connect)

    def add_controllers(self, process: ProcessContext) -> None:
        if not self.served(process.values):
            return
        from hortus.domains.stacks import composition

        composition.add_to(process)

    def local_setup(self, folder: Path, project: str) -> LocalSetup:
        from hortus.domains.stacks.local import local_setup

        return local_setup(folder)

    def local_artifacts(self, registry: str) -> Iterable[LocalArtifact]:
        from hortus.domains.stacks.local import local_artifacts

        return local_artifacts(registry)

    def demo(self, fleet: DemoFleet) -> Iterable[tuple[Resource, Object]]:
        from hortus.domains.stacks import demo

        return demo.objects(fleet)


DOMAIN = _Stacks(__name__)
