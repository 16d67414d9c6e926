"""ARM: machine images of OpenStack by architecture and capabilities, judged and shown before machines need them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hortus.domains.garden.topics import GardenTopic

if TYPE_CHECKING:
    from hortus.domains import ProcessContext
    from hortus.engine.flags import Flag
    from hortus.terminal import CommandGroup, Connections


class _Arm(GardenTopic):
    def flags(self) -> Sequence[Flag]:
        from hortus.domains.garden.arm.settings import FLAGS

        return FLAGS

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.garden.arm.settings import profile_webhook

        profile_webhook(values)

    def add_controllers(self, process: ProcessContext) -> None:
        from hortus.domains.garden.arm.settings import profile_webhook

        if (settings := profile_webhook(process.values)) is not None:
            from hortus.domains.garden.arm.reviews import add_webhook

            add_webhook(process.manager, settings)

    def add_commands(self, group: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.garden.arm import commands

        commands.register(group)


TOPIC = _Arm(__name__)
