"""Commands that read rollouts."""

from __future__ import annotations

import os
import shutil
import sys

import click

from hortus.domains.rollouts import views
from hortus.engine import read
from hortus.engine.rollouts.types import ENDED, ROLLOUTS, Rollout, RolloutPhase
from hortus.kube import Client
from hortus.terminal import CommandError, Connections, OutputFormat, named, print_listed, print_one
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
    if shown or not output.tabular:
        print_listed(shown, output, views)
    else:
        more = "; `hortus rollout start --help` says how to begin one" if not found else ""
        more = f"; {len(found)} ended: `hortus rollout history`" if found and not ended else more
        click.echo(f"No rollouts {'' if ended else 'under way '}in namespace {namespace}{more}.", err=True)


async def show_rollout(connections: Connections, name: str, namespace: str, output: OutputFormat) -> None:
    """Print one rollout. Raises CommandError, KubeError."""
    async with connections.management() as client:
        rollout = await get_rollout(client, name, namespace)
    print_one(rollout, output, views)


async def watch_rollout(connections: Connections, name: str, namespace: str) -> None:
    """Follow a rollout to its end, on a terminal by its page, elsewhere by a line for each change.

    Raises CommandError when it does not succeed; KubeError.
    """
    async with connections.management() as client:
        await get_rollout(client, name, namespace)
        printer = _Redrawn() if _on_terminal() else _Lines()
        async with client.watch(ROLLOUTS, namespace, fields=f"metadata.name={name}", initial_events=True) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                if event.type == "DELETED":
                    raise CommandError(f"Rollout {name} was deleted")
                rollout = read(Rollout, event.object)
                printer.print(rollout)
                if rollout.status.phase == RolloutPhase.SUCCEEDED:
                    return
                if rollout.status.phase in ENDED or rollout.status.phase == RolloutPhase.HALTED:
                    raise CommandError(f"Rollout {name}: {views.message_of(rollout)}")
    raise CommandError("the server ended the watch: run the command again")


def _on_terminal() -> bool:
    return sys.stdout.isatty() and os.getenv("TERM", "dumb") != "dumb"


class _Lines:
    """Prints a line for each change."""

    def __init__(self) -> None:
        self._last = ""

    def print(self, rollout: Rollout) -> None:
        if (line := views.line(rollout)) != self._last:
            click.echo(clean(line))
            self._last = line


class _Redrawn:
    """Prints the page over the one before (ECMA-48: cursor up, erase below), each line cut at the terminal's width."""

    def __init__(self) -> None:
        self._height = 0

    def print(self, rollout: Rollout) -> None:
        width, height = shutil.get_terminal_size()
        lines = [clean(line)[: width - 1] if line else "" for line in views.page(rollout)][: height - 1]
        before = f"\x1b[{self._height}A\x1b[J" if self._height else ""
        click.echo(before + "\n".join(lines))
        self._height = len(lines)


async def get_rollout(client: Client, name: str, namespace: str) -> Rollout:
    """One rollout. Raises CommandError, which names those that are there; KubeError."""
    return read(Rollout, await named(client, ROLLOUTS, name, namespace))
