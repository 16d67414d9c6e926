"""Live migration: a control plane moves to another seed without a failed request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hortus.domains.garden.topics import GardenTopic

if TYPE_CHECKING:
    from hortus.terminal import CommandGroup, Connections


class _Migration(GardenTopic):
    def add_fleet_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.garden.migration import commands

        commands.register(app, connect)


TOPIC = _Migration(__name__)
