"""`hortus garden acl`: judges access lists before they are set, and reports whom they turn away."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hortus.terminal import EXIT_ERROR, CommandError, CommandGroup, Connections, Table, clean, print_table, run

if TYPE_CHECKING:
    from hortus.domains.garden.acl.trying import TriedList

_SHOOT = click.argument("shoot", metavar="SHOOT")
_NAMESPACE = click.option(
    "--namespace", "-n", default="", help="Namespace of the project in the garden; else that of its kubeconfig."
)
_CONFIG = click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the configuration to try, in place of the Shoot's.",
)
_ALWAYS = click.option("--always", multiple=True, metavar="CIDR", help="Further network that the operator lets in.")


def register(group: CommandGroup, connect: Callable[[], Connections]) -> None:
    """Add these commands to the group of the garden."""
    acl = CommandGroup("acl", help="Judge access lists of Shoots.", no_args_is_help=True)
    group.add_command(acl)

    @acl.command()
    @_SHOOT
    @click.option("--from", "sources", multiple=True, metavar="ADDRESS", help="Address that must get in, as your own.")
    @_CONFIG
    @_ALWAYS
    @_NAMESPACE
    def check(
        shoot: str, sources: tuple[str, ...], config: Path | None, always: tuple[str, ...], namespace: str
    ) -> None:
        """Judge the access list of a Shoot: errors, warnings, and addresses that must get in.

        Ends with 1 for a list that would be refused, or that locks out one of --from.

        \b
        hortus garden acl check demo-1 --from 203.0.113.9
        hortus garden acl check demo-1 --config new-list.yaml --from 203.0.113.9
        """
        run(_check(connect(), shoot, sources, config, always, namespace))

    @acl.command()
    @_SHOOT
    @click.option(
        "--log",
        required=True,
        type=click.Path(exists=True, dir_okay=False, allow_dash=True),
        help="Access log of the gateway, as kubectl logs prints it; - is the standard input.",
    )
    @_CONFIG
    @_ALWAYS
    @_NAMESPACE
    def report(shoot: str, log: str, config: Path | None, always: tuple[str, ...], namespace: str) -> None:
        """Report the addresses in a gateway's log that the access list of a Shoot turns away, or would.

        \b
        hortus garden acl report demo-1 --log gateway.log
        """
        run(_report(connect(), shoot, log, config, always, namespace))


async def _check(
    connections: Connections,
    shoot: str,
    sources: tuple[str, ...],
    config: Path | None,
    always: tuple[str, ...],
    namespace: str,
) -> None:
    for one in sources:
        _checked("--from", one, ip_address)
    tried = await _tried(connections, shoot, config, always, namespace)
    for line in tried.lines():
        click.echo(clean(line))
    locked_out = [one for one in sources if not tried.lets_in(one)]
    for one in sources:
        click.echo(f"{one}: {'locked out' if one in locked_out else 'let in'}")
    if tried.errors or locked_out:
        raise click.exceptions.Exit(EXIT_ERROR)


async def _report(
    connections: Connections, shoot: str, log: str, config: Path | None, always: tuple[str, ...], namespace: str
) -> None:
    from hortus.domains.garden.acl.report import blocked
    from hortus.domains.garden.acl.report import connections as read

    tried = await _tried(connections, shoot, config, always, namespace)
    with click.open_file(log, errors="replace") as lines:
        found, strange = [], 0
        for one in read(lines):
            if one is None:
                strange += 1
            elif tried.is_meant(one):
                found.append(one)
    rows = blocked(tried.access, tried.always, found)
    if rows:
        table = [(row.source, row.number, row.first, row.last, ", ".join(row.hosts)) for row in rows]
        print_table(Table(("Source", "Connections", "First", "Last", "To"), table))
    click.echo(f"{sum(row.number for row in rows)} of {len(found)} connections to {shoot} are turned away.")
    if strange:
        click.echo("1 line is" if strange == 1 else f"{strange} lines are", nl=False)
        click.echo(" in no format that is known.")


async def _tried(
    connections: Connections, shoot: str, config: Path | None, always: tuple[str, ...], namespace: str
) -> TriedList:
    from hortus.domains.garden.acl.cidrs import parse_cidr
    from hortus.domains.garden.acl.trying import SEEDS, SHOOTS, seed_of, try_list
    from hortus.kube.errors import Forbidden, NotFound

    for one in always:
        _checked("--always", one, parse_cidr)
    async with connections.garden() as garden:
        place = namespace or garden.access.namespace
        try:
            found = await garden.get(SHOOTS, shoot, place)
        except NotFound:
            raise CommandError(f"no Shoot {place}/{shoot} in the garden; choose a project with --namespace") from None
        seed: Any = None
        try:
            name = seed_of(found)
            seed = await garden.get(SEEDS, name) if name else None
        except (Forbidden, NotFound):
            click.echo("The networks of the seed are unknown to you: give them with --always.", err=True)
    return try_list(found, seed, config=_document(config), additional=always)


def _checked(option: str, value: str, read: Callable[[str], object]) -> None:
    try:
        read(value)
    except ValueError as error:
        raise CommandError(f"{option} {value}: {error}") from None


def _document(config: Path | None) -> Any:
    from hortus.kube import yaml

    if config is None:
        return None
    try:
        return yaml.load(config.read_bytes())
    except yaml.YamlError as error:
        raise CommandError(f"{config}: {error}") from None
