"""Commands and groups of commands: click's, with a heading for each command in the help of its group.

A command is a function under `@group.command(panel="Clusters")` and click's own `option` and `argument`. This module
loads nothing but click, and so must the modules that declare commands: every run of the program loads all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import click

Decorator = Callable[[Callable[..., None]], Callable[..., None]]
"""Gives a command an option or an argument."""

OUTPUT = click.option("--output", "-o", default="table", help="table, json or yaml.")
"""The option of commands that print one thing."""


def timeout(seconds: float) -> Decorator:
    """The option `--timeout` of commands that wait."""
    return click.option(
        "--timeout", type=click.FloatRange(min=0.1), default=seconds, metavar="SECONDS", help="Time to wait."
    )


def together(*parts: Decorator) -> Decorator:
    """Several options as one, shown in this order."""
    return lambda function: reduce(lambda made, part: part(made), reversed(parts), function)


class _Listed:
    """The part that commands and groups share: the heading they stand under, defaults in their help."""

    params: list[click.Parameter]

    def __init__(self, *args: Any, panel: str = "Commands", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.panel = panel
        for option in self.params:
            if isinstance(option, click.Option) and option.show_default is None:
                # An empty default says nothing; that of --this/--that names one of the two.
                option.show_default = bool(option.default or option.secondary_opts)


class _Command(_Listed, click.Command):
    """A command under a heading."""


class CommandGroup(_Listed, click.Group):
    """Commands that are listed by their headings, in the order in which they were added."""

    command_class = _Command
    group_class = type

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            # Without a limit: click would cut the sentence off where the line ends.
            row = (name, command.get_short_help_str(limit=1000))
            panels.setdefault(getattr(command, "panel", "Commands"), []).append(row)
        widest = max((len(name) for name in self.commands), default=0)
        for panel, rows in panels.items():
            with formatter.section(panel):
                # Equal columns under all headings.
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])
