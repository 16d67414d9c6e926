"""Air gap: the destinations that the nodes of a Shoot may call, and the registry that has all of its images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hortus.domains.garden.topics import GardenTopic

if TYPE_CHECKING:
    from hortus.domains.garden.extension.composition import SeedView
    from hortus.domains.garden.extension.topic import ConfigReviewer, ExtensionFacts, ExtensionTopic
    from hortus.engine.rbac import Permission
    from hortus.terminal import CommandGroup, Connections


class _AirGap(GardenTopic):
    def facts(self) -> ExtensionFacts:
        from hortus.domains.garden.airgap.names import FACTS

        return FACTS

    def extension(self, values: Mapping[str, Any], view: SeedView) -> ExtensionTopic:
        from hortus.domains.garden.airgap.topic import AirGapTopic

        return AirGapTopic(view)

    def reviewer(self, values: Mapping[str, Any]) -> ConfigReviewer:
        from hortus.domains.garden.airgap.topic import AirGapReviewer

        return AirGapReviewer()

    def permissions(self) -> Sequence[Permission]:
        from hortus.domains.garden.airgap.names import PERMISSIONS
        from hortus.domains.garden.extension.permissions import WEBHOOK_PERMISSIONS

        return (*PERMISSIONS, *WEBHOOK_PERMISSIONS)

    def add_commands(self, group: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.garden.airgap import commands

        commands.register(group, connect)


TOPIC = _AirGap(__name__)
