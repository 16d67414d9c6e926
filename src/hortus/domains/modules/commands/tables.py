"""`hortus module list|catalog`: the modules that a cluster has, and those that it is offered; two forms of each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hortus.domains.modules.commands.places import CLUSTER
from hortus.terminal import (
    OUTPUT,
    CommandGroup,
    Connect,
    Connections,
    OutputFormat,
    Table,
    clean,
    plain,
    print_table,
    run,
    together,
)

if TYPE_CHECKING:
    from hortus.domains.modules.using.finding import ModulesHere
    from hortus.domains.modules.using.installed import InstalledModule

REMOTE_URL = click.option(
    "--remote-url",
    default="",
    metavar="ADDRESS",
    help="https address, or file, of the list of community modules. [default: the list of the Kyma project]",
)
_REMOTE = together(
    click.option("--remote", is_flag=True, help="List the community modules of the Kyma project too."), REMOTE_URL
)


def register(module: CommandGroup, connect: Connect, *, split: bool) -> None:
    """Add the commands to the group of modules; with `split`, `list` prints two tables."""

    @module.command("list")
    @CLUSTER
    @click.option("--show-errors", is_flag=True, help="Print the reason of each state that needs somebody.")
    @OUTPUT
    def list_(cluster: str, namespace: str, show_errors: bool, output: OutputFormat) -> None:
        """List the modules of a cluster.

        INSTALLATION STATUS is that of the module's operator, MODULE STATUS that of its default resource. Modules that
        the Kyma does not list are found by their operator.

        \b
        hortus module list --cluster demo-1
        """
        run(_list(connect(), cluster, namespace, output, show_errors=show_errors, split=split))

    @module.command()
    @CLUSTER
    @_REMOTE
    @OUTPUT
    def catalog(cluster: str, namespace: str, remote: bool, remote_url: str, output: OutputFormat) -> None:
        """List the modules that a cluster is offered, with their channels.

        ORIGIN is kyma for modules that Kyma manages, community for those of a remote list, and namespace and name of
        the ModuleTemplate for community modules that are pulled.
        """
        run(_catalog(connect(), cluster, namespace, remote_url, output, remote=remote))


async def _list(
    connections: Connections, cluster: str, namespace: str, output: OutputFormat, *, show_errors: bool, split: bool
) -> None:
    from hortus.domains.modules.using.finding import modules_here
    from hortus.domains.modules.using.installed import problems
    from hortus.domains.modules.using.session import open_session

    async with open_session(connections, cluster, namespace) as session:
        here = await modules_here(session)
    rows = [*here.core, *here.community]
    if not output.tabular:
        plain(_split_document(here) if split else [row.summary() for row in rows], output)
    elif not rows:
        click.echo("No modules. See what is offered: hortus module catalog", err=True)
    elif split:
        _print_split(here)
    else:
        from hortus.domains.modules.using.installed import HEADS

        print_table(Table(HEADS, [row.row for row in rows]))
    found = problems(rows)
    if show_errors:
        for line in found:
            click.echo(clean(line), err=True)
    elif found and output.tabular and sys.stderr.isatty():
        click.echo("Some modules need somebody; the reasons: --show-errors", err=True)


def _split_document(here: ModulesHere) -> dict[str, Any]:
    return {
        "modules": [row.split_summary() for row in here.core],
        "communityModules": [row.community_summary() for row in here.community],
    }


def _print_split(here: ModulesHere) -> None:
    from hortus.domains.modules.using.installed import COMMUNITY_HEADS, HEADS

    tables: Sequence[tuple[Sequence[str], Sequence[InstalledModule]]] = (
        (("Module", *HEADS[1:]), here.core),
        (COMMUNITY_HEADS, here.community),
    )
    shown = [(heads, rows) for heads, rows in tables if rows]
    for number, (heads, rows) in enumerate(shown):
        if number:
            click.echo()
        community = heads is COMMUNITY_HEADS
        print_table(Table(heads, [row.community_row if community else row.row for row in rows]))


async def _catalog(
    connections: Connections, cluster: str, namespace: str, address: str, output: OutputFormat, *, remote: bool
) -> None:
    from hortus.domains.modules.using.community import OFFICIAL, remote_templates
    from hortus.domains.modules.using.offers import HEADS, offers
    from hortus.domains.modules.using.session import open_session

    listed = await remote_templates(address or OFFICIAL) if remote or address else []
    async with open_session(connections, cluster, namespace) as session:
        found = offers(await session.releases(), await session.templates(), [one.template for one in listed])
    if not output.tabular:
        plain([offer.summary() for offer in found], output)
    elif found:
        print_table(Table(HEADS, [offer.row for offer in found]))
    else:
        click.echo("The cluster is offered no modules: its catalog is empty, or not copied to it yet.", err=True)
