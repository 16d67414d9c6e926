"""`hortus leftovers`: list, show and acknowledge what may be left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from hortus.terminal import CommandGroup, Connections, OutputFormat, completing, output_formats, run
from hortus.terminal.confirmation import YES

Connect = Callable[[], Connections]
DEFAULT_NAMESPACE = "fleet"

_ABOUT = """Show what may be left of clusters and their objects.

A deletion always ends. What it could not see to be gone is recorded as a
Leftover, and settled once it is seen to be gone. docs/leftovers.md explains it.
"""
_namespace = click.option("--namespace", "-n", default=DEFAULT_NAMESPACE, help="Namespace of Leftovers.")


async def _names(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.engine.leftovers.types import LEFTOVERS
    from hortus.kube.objects import key_of

    async with connections.management() as client:
        listed = await client.list(LEFTOVERS, given.get("namespace") or DEFAULT_NAMESPACE, metadata_only=True)
        return [key_of(one).name for one in listed.items]


_name = click.argument("name", metavar="NAME", help="Name of the Leftover.", shell_complete=completing(_names))


def register(app: CommandGroup, connect: Connect) -> None:
    """Add this domain's commands to `app`; `connect` connects to the clusters that the user chose."""
    group = CommandGroup("leftovers", panel="Fleet", help=_ABOUT, no_args_is_help=True)
    app.add_command(group)

    @group.command("list")
    @click.option("--all", "-a", "all_", is_flag=True, help="Also those that are settled.")
    @click.option("--cluster", default="", metavar="NAME", help="Only those of this GardenerCluster.")
    @_namespace
    @output_formats("table", "wide", "json", "yaml")
    def list_(all_: bool, cluster: str, namespace: str, output: OutputFormat) -> None:
        """List Leftovers that are not settled, the oldest first."""
        from hortus.domains.leftovers import reading

        run(reading.list_leftovers(connect(), namespace, output, settled=all_, cluster=cluster))

    @group.command()
    @_name
    @_namespace
    @output_formats("table", "json", "yaml")
    def show(name: str, namespace: str, output: OutputFormat) -> None:
        """Show one Leftover: each item, how to look for it and how to remove it."""
        from hortus.domains.leftovers import reading

        run(reading.show_leftover(connect(), name, namespace, output))

    @group.command()
    @_name
    @click.option("--reason", required=True, metavar="TEXT", help="The reason, for those who read it later.")
    @_namespace
    @YES
    def acknowledge(name: str, reason: str, namespace: str, yes: bool) -> None:
        """Take a Leftover out of the alert.

        Nothing is removed: the items stay where they are, and the Leftover stays in the list until it is settled or
        deleted. Your user name and the reason are recorded.
        """
        from hortus.domains.leftovers import reading

        run(reading.acknowledge(connect(), name, namespace, reason, yes=yes))
