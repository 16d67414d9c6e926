"""`hortus garden gardenlets`: the gardenlets of all Seeds, and the difference that a change would make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hortus.terminal import CommandError, CommandGroup, Connections, Table, clean, print_table, run

if TYPE_CHECKING:
    from hortus.domains.garden.gardenlets.showing import GardenletFacts

_NAME = click.argument("name", metavar="NAME")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def register(group: CommandGroup, connect: Callable[[], Connections]) -> None:
    """Add these commands to the group of the garden."""
    gardenlets = CommandGroup("gardenlets", help="Look after the gardenlets of Seeds.", no_args_is_help=True)
    group.add_command(gardenlets)

    @gardenlets.command(name="list")
    def list_() -> None:
        """List Gardenlets, with their charts and the versions that their Seeds report."""
        run(_list(connect()))

    @gardenlets.command()
    @_NAME
    def why(name: str) -> None:
        """Explain the state of one gardenlet: what it waits for, and the owner of the next step."""
        run(_why(connect(), name))

    @gardenlets.command()
    @_NAME
    @click.option("--chart", default="", metavar="REFERENCE", help="Chart to compare with that of the Gardenlet.")
    @click.option("-f", "--file", "file", type=_FILE, help="File with the Gardenlet as it is to be.")
    @click.option("--seed-kubeconfig", type=_FILE, help="Kubeconfig of the seed: compare with what is there.")
    @click.option(
        "--registry-hosts",
        default="",
        metavar="HOSTS",
        help="Registries that may be local, separated by commas; http:// before one allows plain HTTP.",
    )
    def diff(name: str, chart: str, file: Path | None, seed_kubeconfig: Path | None, registry_hosts: str) -> None:
        """Show what a change of a Gardenlet would change in its seed. Nothing is written.

        Without --seed-kubeconfig the objects of the Gardenlet as it is are compared with those of the change. Values of
        Secrets are not shown.

        \b
        hortus garden gardenlets diff my-seed --chart example.org/gardenlet:v1.121.0
        hortus garden gardenlets diff my-seed -f new.yaml --seed-kubeconfig seed.yaml
        """
        run(_diff(connect(), name, chart, file, seed_kubeconfig, registry_hosts))


async def _facts(connections: Connections) -> GardenletFacts:
    from hortus.domains.garden.gardenlets.showing import read_facts

    async with connections.management() as client, connections.garden() as garden:
        return await read_facts(client, garden)


async def _list(connections: Connections) -> None:
    facts = await _facts(connections)
    rows = [facts.row(one) for one in facts.gardenlets]
    print_table(Table(("Name", "Chart", "Version", "Registered", "Reconciled", "Healthy"), rows))


async def _why(connections: Connections, name: str) -> None:
    facts = await _facts(connections)
    found = next((one for one in facts.gardenlets if one.metadata.name == name), None)
    if found is None:
        raise CommandError(f"there is no Gardenlet {name} in namespace garden")
    for line in facts.lines(found):
        click.echo(clean(line))


async def _diff(
    connections: Connections, name: str, chart: str, file: Path | None, kubeconfig: Path | None, hosts: str
) -> None:
    from hortus.domains.garden.gardenlets.comparing import GardenletComparison

    async with connections.management() as client, connections.garden() as garden:
        comparison = GardenletComparison(client, garden, hosts=hosts)
        async with comparison:
            lines = await comparison.lines(name, chart=chart, file=file, kubeconfig=kubeconfig)
    for line in lines:
        click.echo(clean(line))
    if not lines:
        click.echo("Nothing would change.")
