"""Audit: events of API servers, kept through failures and delivered, with evidence that none was altered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hortus.domains.garden.topics import GardenTopic

if TYPE_CHECKING:
    from hortus.terminal import CommandGroup, Connections


class _Audit(GardenTopic):
    def add_commands(self, group: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.garden.audit import commands

        commands.register(group, connect)


TOPIC = _Audit(__name__)
