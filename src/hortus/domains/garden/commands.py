"""`hortus garden`: the group that the commands of all topics stand in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hortus.domains.garden.topics import all_topics
from hortus.terminal import CommandGroup, Connections

GROUP: Final = "garden"
ABOUT: Final = """Look after extensions of Gardener.

docs/garden explains each of them.
"""


def register(app: CommandGroup, connect: Callable[[], Connections]) -> None:
    """Add the commands of all topics, most of them to the group."""
    group = CommandGroup(GROUP, panel="Fleet", help=ABOUT, no_args_is_help=True)
    for topic in all_topics():
        topic.add_commands(group, connect)
        topic.add_fleet_commands(app, connect)
    if group.commands:
        app.add_command(group)
