"""`hortus agent`: removes agents, and waits until what they consist of is gone."""

from __future__ import annotations

from collections.abc import Callable

import click

from hortus.domains.agents.fleet.commands import ABOUT, GROUP
from hortus.terminal import EXIT_TIMEOUT, CommandError, CommandGroup, Connections, confirm, run, timeout
from hortus.terminal.confirmation import YES

_PAUSE = 1.0
"""Seconds between two looks at what is left."""


def register(app: CommandGroup, connect: Callable[[], Connections]) -> None:
    """Add this domain's commands to `app`; `connect` connects to the clusters that the user chose."""
    group = app.commands.get(GROUP)
    if not isinstance(group, CommandGroup):
        group = CommandGroup(GROUP, panel="Fleet", help=ABOUT, no_args_is_help=True)
    app.add_command(group)

    @group.command()
    @click.argument("names", metavar="[NAME]...", nargs=-1)
    @click.option("--all", "-a", "all_", is_flag=True, help="All of the namespace.")
    @click.option("--namespace", "-n", default="instana-agent", help="Namespace of the agents.")
    @timeout("5m")
    @YES
    def remove(names: tuple[str, ...], all_: bool, namespace: str, timeout: float, yes: bool) -> None:
        """Delete agents and wait until the operator has removed their objects.

        Do it before the operator itself is uninstalled: without one their
        finalizers stay.
        """
        if bool(names) == all_:
            raise click.UsageError("name the agents, or give --all")
        chosen = ", ".join(names) if names else "all agents"
        confirm(f"Delete {chosen} in namespace {namespace}?", yes=yes)
        run(_remove(connect(), names, namespace, timeout))


async def _remove(connections: Connections, names: tuple[str, ...], namespace: str, patience: float) -> None:
    """Raises CommandError when something is left after `patience` seconds."""
    from hortus.domains.agents.removal import remove_agents
    from hortus.kube.clock import SystemClock

    async with connections.management() as client:
        left = await remove_agents(client, names, namespace, clock=SystemClock(), patience=patience, pause=_PAUSE)
    if left:
        shown = ", ".join(left)
        message = f"{shown} in namespace {namespace} are still there after {patience:g} s: does an operator run?"
        raise CommandError(message, code=EXIT_TIMEOUT)
