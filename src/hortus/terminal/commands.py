"""Commands and groups of commands: click's, with a heading for each command in the help of its group.

A command is a function under `@group.command(panel="Clusters")` and click's own `option` and `argument`. This module
loads nothing but click, and so must the modules that declare commands: every run of the program loads all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import click
from click.core import ParameterSource

from hortus.terminal.completion import NamespaceName
from hortus.terminal.failures import coloured, whole_program
from hortus.terminal.values import Duration, OutputChoice, listed

Decorator = Callable[[Callable[..., None]], Callable[..., None]]
"""Gives a command an option or an argument."""


def output_formats(*formats: str, when: str = "") -> Decorator:
    """The option `-o` of a command with these formats, of which the first is the default.

    `when` begins its help where it means something only with another option.
    """
    return click.option(
        "--output",
        "-o",
        type=OutputChoice(formats),
        default=formats[0],
        metavar="FORMAT",
        help=f"{when}{listed(formats)}.",
    )


OUTPUT = output_formats("table", "json", "yaml")
"""The option of commands that print one thing."""


def timeout(text: str) -> Decorator:
    """The option `--timeout` of commands that wait, with its default."""
    return click.option("--timeout", type=Duration(), default=text, metavar="DURATION", help="Time to wait.")


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
            if isinstance(option, click.Option) and option.name == "namespace":
                option.type = NamespaceName()
            if isinstance(option, click.Option) and option.show_default is None:
                # An empty default says nothing; that of --this/--that names one of the two.
                option.show_default = bool(option.default or option.secondary_opts)


class _Command(_Listed, click.Command):
    """A command under a heading."""

    def __init__(self, *args: Any, uses: Sequence[str] | None = None, **kwargs: Any) -> None:
        """`uses` lists the root's options that mean something to the command; None stands for all."""
        super().__init__(*args, **kwargs)
        self._uses = uses

    def invoke(self, ctx: click.Context) -> Any:
        if self._uses is not None:
            _refuse_others(ctx, self._uses)
        return super().invoke(ctx)


def _refuse_others(context: click.Context, uses: Sequence[str]) -> None:
    names = [str(option.name) for option in context.find_root().command.params]
    refuse([name for name in names if name not in uses], f"`{context.command_path}` does not use it")


def refuse(names: Sequence[str], reason: str) -> None:
    """Raises UsageError if one of these options of the root was typed: an option is never ignored."""
    context = click.get_current_context()
    root = context.find_root()
    for option in root.command.params:
        if option.name in names and root.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]} means nothing here: {reason}", context)


class CommandGroup(_Listed, click.Group):
    """Commands that are listed by their headings, in the order in which they were added."""

    command_class = _Command
    group_class = type

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> None:  # type: ignore[override]
        """The whole program: runs the command of the line, and ends as all commands end."""
        words = sys.argv[1:] if args is None else list(args)
        with whole_program(), self.make_context(prog_name, words, **extra) as context:
            context.color = coloured(sys.stdout)
            self.invoke(context)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            if command.hidden:
                continue
            # Without a limit: click would cut the sentence off where the line ends.
            row = (name, command.get_short_help_str(limit=1000))
            panels.setdefault(getattr(command, "panel", "Commands"), []).append(row)
        widest = max((len(name) for name in self.commands), default=0)
        for panel, rows in panels.items():
            with formatter.section(panel):
                # Equal columns under all headings.
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])
