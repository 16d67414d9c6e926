"""ACL: lists of addresses that may reach the kube-apiserver, the VPN and the dashboards of a Shoot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hortus.domains.garden.topics import GardenTopic

if TYPE_CHECKING:
    from hortus.domains.garden.extension.composition import SeedView
    from hortus.domains.garden.extension.topic import ConfigReviewer, ExtensionFacts, ExtensionTopic
    from hortus.engine.flags import Flag
    from hortus.engine.rbac import Permission
    from hortus.terminal import CommandGroup, Connections


class _Acl(GardenTopic):
    def facts(self) -> ExtensionFacts:
        from hortus.domains.garden.acl.names import FACTS

        return FACTS

    def extension(self, values: Mapping[str, Any], view: SeedView) -> ExtensionTopic:
        from hortus.domains.garden.acl.settings import acl_settings
        from hortus.domains.garden.acl.topic import AclTopic

        return AclTopic(acl_settings(values), view)

    def reviewer(self, values: Mapping[str, Any]) -> ConfigReviewer:
        from hortus.domains.garden.acl.review import AclReviewer
        from hortus.domains.garden.acl.settings import admission_limits

        return AclReviewer(admission_limits(values))

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.garden.acl.settings import FLAGS

        return FLAGS

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.garden.acl.settings import acl_settings

        acl_settings(values)

    def permissions(self) -> Sequence[Permission]:
        from hortus.domains.garden.acl.names import PERMISSIONS

        return PERMISSIONS

    def add_commands(self, group: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.garden.acl import commands

        commands.register(group, connect)


TOPIC = _Acl(__name__)
