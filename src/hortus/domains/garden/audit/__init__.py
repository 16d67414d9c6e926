"""Audit: events of API servers, kept through failures and delivered, with evidence that none was altered."""

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


class _Audit(GardenTopic):
    def facts(self) -> ExtensionFacts:
        from hortus.domains.garden.audit.names import FACTS

        return FACTS

    def extension(self, values: Mapping[str, Any], view: SeedView) -> ExtensionTopic:
        from hortus.domains.garden.audit.outputs import add_output_looks
        from hortus.domains.garden.audit.settings import audit_settings
        from hortus.domains.garden.audit.topic import AuditTopic

        return AuditTopic(audit_settings(values), view, add_output_looks(view))

    def reviewer(self, values: Mapping[str, Any]) -> ConfigReviewer:
        from hortus.domains.garden.audit.review import AuditReviewer
        from hortus.domains.garden.audit.settings import audit_settings

        return AuditReviewer(audit_settings(values))

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.garden.audit.settings import FLAGS

        return FLAGS

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.garden.audit.settings import audit_settings

        audit_settings(values)

    def permissions(self) -> Sequence[Permission]:
        from hortus.domains.garden.audit.names import PERMISSIONS
        from hortus.domains.garden.extension.permissions import WEBHOOK_PERMISSIONS

        return (*PERMISSIONS, *WEBHOOK_PERMISSIONS)

    def add_commands(self, group: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.garden.audit import commands

        commands.register(group, connect)


TOPIC = _Audit(__name__)
