"""`hortus canary`: how the canary is, what its last runs came to, and a run at once."""

from __future__ import annotations

import time

import click

from hortus.terminal import (
    DEFAULT_NAMESPACE,
    EXIT_ERROR,
    EXIT_TIMEOUT,
    OUTPUT,
    CommandError,
    CommandGroup,
    Connect,
    Connections,
    OutputFormat,
    clean,
    plain,
    print_table,
    run,
    timeout,
)


def register(app: CommandGroup, connect: Connect) -> None:
    """Add this domain's command to `app`; `connect` connects to the clusters that the user chose."""

    @app.command(panel="Clusters")
    @click.option("--now", is_flag=True, help="Start a run now, and wait for its end.")
    @click.option("--wait/--no-wait", default=True, help="With --now: wait until it is over.")
    @timeout("2h")
    @click.option("--namespace", "-n", default=DEFAULT_NAMESPACE, help="Namespace of the canary.")
    @OUTPUT
    def canary(now: bool, wait: bool, timeout: float, namespace: str, output: OutputFormat) -> None:
        """Show how the canary is: a small cluster that is grown, used and deleted every hour.

        Exit code 1 when its last run failed.
        """
        run(_canary(connect(), namespace, output, timeout if now and wait else None, ask=now))


async def _canary(
    connections: Connections, namespace: str, format: OutputFormat, timeout: float | None, *, ask: bool
) -> None:
    from hortus.domains.canary import lookup, views

    async with connections.management() as client:
        if ask:
            await lookup.opened(client, namespace)
            asked = await lookup.ask(client, namespace, time.time())
            if timeout is None:
                click.echo("a run of the canary is asked for")
                return
            ended = await lookup.ended(client, namespace, asked, timeout)
            if ended is None:
                raise CommandError(f"the run of the canary is not over after {timeout:g} s", code=EXIT_TIMEOUT)
        found = await lookup.current(client, namespace)
    if not format.tabular:
        plain(views.shown(found), format)
    else:
        for line in views.lines(found, time.time()):
            click.echo(clean(line))
        if found.history:
            click.echo("")
            print_table(views.history(found))
    if found.history and found.history[0].failed:
        raise SystemExit(EXIT_ERROR)
