"""Commands that read rollouts."""

from __future__ import annotations

import click

from hortus.domains.rollouts import views
from hortus.engine import read
from hortus.engine.rollouts.types import ENDED, ROLLOUTS, Rollout, RolloutPhase
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.terminal import CommandError, Connections, OutputFormat, Table, plain, print_table
from hortus.terminal.table import clean


async def list_rollouts(
    connections: Connections, namespace: str, output: OutputFormat, *, ended: bool, subject: str = ""
) -> None:
    """Print rollouts, the newest first. Raises KubeError."""
    async with connections.management() as client:
        found = [read(Rollout, one) for one in (await client.list(ROLLOUTS, namespace)).items]
    shown = [
        one
        for one in sorted(found, key=views.age_key, reverse=True)
        if (ended or one.status.phase not in ENDED) and subject in ("", one.spec.change.subject)
    ]
    if not output.tabular:
        plain([views.summary(one) for one in shown], output)
    elif shown:
        wide = output.name == "wide"
        heads = [*views.HEADS, *views.WIDE] if wide else views.HEADS
        print_table(Table(heads, [views.row(one, wide=wide) for one in shown]))
    else:
        more = "" if ended or not found else f"; {len(found)} ended: `hortus rollout history`"
        click.echo(f"No rollouts {'' if ended else 'under way '}in namespace {namespace}{more}.", err=True)


async def show_rollout(connections: Connections, name: str, namespace: str, output: OutputFormat) -> None:
    """Print one rollout. Raises CommandError, KubeError."""
    async with connections.management() as client:
        rollout = await get_rollout(client, name, namespace)
    if output.name == "table":
        for line in views.page(rollout):
            click.echo(clean(line) if line else "")
    else:
        plain(views.details(rollout), output)


async def watch_rollout(connections: Connections, name: str, namespace: str) -> None:
    """Print a line for each change until the rollout ends. Raises CommandError when that is no success; KubeError."""
    async with connections.management() as client:
        await get_rollout(client, name, namespace)
        last = ""
        async with client.watch(ROLLOUTS, namespace, fields=f"metadata.name={name}", initial_events=True) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                if event.type == "DELETED":
                    raise CommandError(f"Rollout {name} was deleted")
                rollout = read(Rollout, event.object)
                if (line := views.line(rollout)) != last:
                    click.echo(clean(line))
                    last = line
                if rollout.status.phase == RolloutPhase.SUCCEEDED:
                    return
                if rollout.status.phase in ENDED or rollout.status.phase == RolloutPhase.HALTED:
                    raise CommandError(f"Rollout {name}: {views.message_of(rollout)}")
    raise CommandError("the server ended the watch: run the command again")


async def get_rollout(client: Client, name: str, namespace: str) -> Rollout:
    """One rollout. Raises CommandError, which names those that are there; KubeError."""
    try:
        return read(Rollout, await client.get(ROLLOUTS, name, namespace))
    except NotFound:
        listed = [read(Rollout, one).metadata.name for one in (await client.list(ROLLOUTS, namespace, limit=20)).items]
        known = ", ".join(listed[:20]) or "none"
        raise CommandError(f"no Rollout {name} in namespace {namespace}; there are: {known}") from None
