"""The command `hortus plan`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hortus.terminal import (
    DEFAULT_NAMESPACE,
    CommandGroup,
    Connections,
    Decorator,
    Duration,
    Number,
    OutputFormat,
    output_formats,
    together,
)

if TYPE_CHECKING:
    from hortus.simulation.plan.model import FleetPlan

Connect = Callable[[], Connections]
_FILE = click.Path(path_type=Path)
_CHANGE: Decorator = together(
    click.option(
        "--filename", "-f", "files", type=_FILE, multiple=True, metavar="FILE", help="Objects to apply. Repeatable."
    ),
    click.option(
        "--channel",
        "channels",
        multiple=True,
        metavar="MODULE/CHANNEL=VERSION",
        help="Move a channel of a module. Repeatable.",
    ),
    click.option(
        "--policy", "policies", type=_FILE, multiple=True, metavar="FILE", help="A RolloutPolicy to try. Repeatable."
    ),
    click.option(
        "--delete",
        "deletions",
        multiple=True,
        metavar="TYPE/NAME",
        help="Delete an object of the management cluster or the garden. Repeatable.",
    ),
    click.option(
        "--without",
        "outages",
        multiple=True,
        metavar="PART",
        help="An outage: seed/NAME, registry for all registries, replica for controllers that fail. Repeatable.",
    ),
)
_LIMITS: Decorator = together(
    click.option(
        "--until",
        type=Duration(least=1.0),
        metavar="DURATION",
        help="Let this time pass, such as 30d, also when everything rests before.",
        show_default="until everything rests, at most 30 days",
    ),
    click.option(
        "--budget",
        type=Duration(least=1.0),
        default="30m",
        metavar="DURATION",
        help="Longest time that making the plan may take here.",
    ),
    click.option("--offline", is_flag=True, help="Read nothing outside of the fleet, such as registries."),
    click.option("--seed", type=Number(0, None), default=0, metavar="NUMBER", help="Chooses the jitter of retries."),
)


def register(app: CommandGroup, connect: Connect) -> None:
    """Add the command to `app`."""

    @app.command(panel="Fleet")
    @_CHANGE
    @_LIMITS
    @click.option(
        "--selector",
        "-l",
        "labels",
        default="",
        metavar="LABELS",
        help="Only clusters with these labels, as if there were no others.",
    )
    @click.option(
        "--namespace", "-n", default=DEFAULT_NAMESPACE, help="Namespace of objects that name none, and of --delete."
    )
    @click.option("--config", type=_FILE, metavar="FILE", help="Flags of the controllers, as for hortus run --config.")
    @click.option("--save", type=_FILE, metavar="FILE", help="Keep the plan for hortus rollout approve --plan.")
    @output_formats("table", "json", "markdown", "html")
    def plan(output: OutputFormat, **given: Any) -> None:
        """Show what the controllers will make of a change, on every cluster.

        The fleet is copied into memory as it is read, the change is applied to the copy, and the real controllers
        run on it in virtual time: days of soak take seconds. Nothing is written to the fleet; a credential that can
        get, list and watch suffices. Without a change, the plan is what time alone will bring.

        Exit code 0: no change; 2: changes; 1: something fails, or the plan cannot be made.

        \b
        hortus plan -f runtime.yaml
        hortus plan --channel template-operator/fast=1.1.0 -o html > plan.html
        hortus plan --delete runtime/demo-1
        hortus plan --until 30d
        """
        from hortus.cli.plan.making import made

        found: FleetPlan = made(connect(), given)
        _print(found, output)
        raise SystemExit(found.exit_code)


def _print(plan: FleetPlan, output: OutputFormat) -> None:
    from hortus.terminal import plain

    if output.name == "json":
        import msgspec

        plain(msgspec.to_builtins(plan), output)
    elif output.name == "html":
        from hortus.simulation.plan.page import html

        click.echo(html(plan))
    else:
        from hortus.simulation.plan.printing import lines, markdown
        from hortus.terminal import print_line

        for line in (markdown if output.name == "markdown" else lines)(plan):
            print_line(line)
