"""`hortus top` and `hortus problems`: the whole fleet at a glance, and what of it needs somebody."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from hortus.terminal import (
    EXIT_ERROR,
    CommandGroup,
    Connections,
    Decorator,
    Duration,
    OutputFormat,
    output_formats,
    run,
    together,
)

if TYPE_CHECKING:
    from hortus.engine.fleet import FleetRow

Connect = Callable[[], Connections]

_SHOWN: Decorator = together(
    click.option("--namespace", "-n", default="", help="Only objects in this namespace."),
    output_formats("table", "wide", "json", "yaml"),
    click.option("--once", is_flag=True, help="Print once, also on a terminal."),
)


def register(app: CommandGroup, connect: Connect) -> None:
    @app.command(panel="Clusters")
    @_SHOWN
    def top(namespace: str, output: OutputFormat, once: bool) -> None:
        """Show the whole fleet, worst first: state, reason, owner of the next step, expiry.

        On a terminal the picture changes with the fleet until q is pressed. Into a pipe it is printed once.
        """
        from hortus.cli.fleet.showing import show_top

        run(show_top(connect(), namespace, output, once=once))

    @app.command(panel="Clusters")
    @_SHOWN
    @click.option(
        "--waiting",
        type=Duration(least=0.0),
        default="30m",
        metavar="DURATION",
        help="Also what has been on its way for longer than this.",
    )
    def problems(namespace: str, output: OutputFormat, once: bool, waiting: float) -> None:
        """Show what in the fleet needs somebody, each with its reason and next step.

        On a terminal the picture changes with the fleet until q is pressed. Into a pipe, or with --once, it is printed
        once; then the exit code is 1 if there are problems.
        """
        from hortus.cli.fleet.showing import show_problems

        found: list[FleetRow] = run(show_problems(connect(), namespace, output, waiting, once=once))
        if found:
            raise SystemExit(EXIT_ERROR)
