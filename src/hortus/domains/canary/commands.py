"""`hortus canary`: how the canary is, what its last runs came to, and a run at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import typer

from hortus.terminal import EXIT_ERROR, EXIT_TIMEOUT, CommandError, Connections, Format, clean, plain, print_table, run

Connect = Callable[[], Connections]


def register(app: typer.Typer, connect: Connect) -> None:
    """Add this domain's command to `app`; `connect` tells which clusters the person means."""

    @app.command(rich_help_panel="Clusters")
    def canary(
        now: Annotated[bool, typer.Option("--now", help="Start a run now, and wait for its end.")] = False,
        wait: Annotated[bool, typer.Option("--wait/--no-wait", help="With --now: wait until it is over.")] = True,
        timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait.")] = 7200.0,
        namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the canary.")] = "kcp-system",
        output: Annotated[str, typer.Option("--output", "-o", help="table, json or yaml.")] = "table",
    ) -> None:
        """Show how the canary is: a small cluster that is grown, used and deleted every hour.

        Exit code 1 when its last run failed.
        """
        run(_canary(connect(), namespace, Format.parse(output), timeout if now and wait else None, ask=now))


async def _canary(
    connections: Connections, namespace: str, format: Format, timeout: float | None, *, ask: bool
) -> None:
    from hortus.domains.canary import lookup, views

    async with connections.management() as client:
        if ask:
            await lookup.opened(client, namespace)
            asked = await lookup.ask(client, namespace, time.time())
            if timeout is None:
                typer.echo("a run of the canary is asked for")
                return
            ended = await lookup.ended(client, namespace, asked, timeout)
            if ended is None:
                raise CommandError(f"the run of the canary is not over after {timeout:g} s", code=EXIT_TIMEOUT)
        found = await lookup.current(client, namespace)
    if not format.tabular:
        plain(views.shown(found), format)
    else:
        for line in views.lines(found, time.time()):
            typer.echo(clean(line))
        if found.history:
            typer.echo("")
            print_table(views.history(found))
    if found.history and found.history[0].failed:
        raise typer.Exit(EXIT_ERROR)
