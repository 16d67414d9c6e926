"""`hortus garden acl`: judges access lists before they are set, reports whom they turn away, and tries them."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hortus.terminal import (
    EXIT_ERROR,
    CommandError,
    CommandGroup,
    Connections,
    Table,
    clean,
    output_formats,
    plain,
    print_table,
    run,
    timeout,
    together,
)
from hortus.terminal.output import OutputFormat

if TYPE_CHECKING:
    from hortus.domains.garden.acl.probing import ConnectTo, Probed, ProbeDialing
    from hortus.domains.garden.acl.trying import TriedList
    from hortus.kube.objects import Object

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
_WAY = together(
    click.option("--source", default="", metavar="ADDRESS", help="Address of this machine to call from."),
    click.option(
        "--connect-to",
        multiple=True,
        metavar="HOST:PORT:ADDRESS:PORT",
        help="Call ADDRESS:PORT in place of HOST:PORT; an empty HOST or PORT is any.",
    ),
    click.option(
        "--gateway",
        "gateways",
        multiple=True,
        metavar="ADDRESS",
        help="Further gateway of the seed to send headers to, as that of another zone.",
    ),
    click.option(
        "--claim",
        default="",
        metavar="ADDRESS",
        help="Address of the list to claim by the PROXY protocol, on ports with headers: no gateway may believe it.",
    ),
    click.option(
        "--without",
        type=click.IntRange(1, 65535),
        multiple=True,
        metavar="PORT",
        help="Port that the gateway does not have, as 8132 with gardenlet's gate RemoveHTTPProxyLegacyPort.",
    ),
    click.option(
        "--ingress-domain", default="", metavar="DOMAIN", help="Domain of the seed's dashboards; else the Seed's."
    ),
)
"""The way from a probe to the gateways."""


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

    _add_probe(acl, connect)


def _add_probe(acl: CommandGroup, connect: Callable[[], Connections]) -> None:
    @acl.command()
    @_SHOOT
    @click.option(
        "--expect",
        type=click.Choice(("refused", "open")),
        default="refused",
        show_default=True,
        metavar="STATE",
        help="State that each entry point should have for this address: refused or open.",
    )
    @_WAY
    @_NAMESPACE
    @timeout("5s")
    @output_formats("table", "json", "yaml")
    def probe(
        shoot: str,
        expect: str,
        source: str,
        connect_to: tuple[str, ...],
        gateways: tuple[str, ...],
        claim: str,
        without: tuple[int, ...],
        ingress_domain: str,
        namespace: str,
        timeout: float,
        output: OutputFormat,
    ) -> None:
        """Try every entry point of a Shoot from here, to see that its access list refuses this address.

        Run it from an address outside of the list, or with --expect open from one inside. It sends no credentials and
        changes nothing. Gateways that no host of the Shoot leads to are tried with --gateway alone. Ends with 1 when an
        entry point is not as expected, or not known.

        \b
        hortus garden acl probe demo-1
        hortus garden acl probe demo-1 --expect open --source 203.0.113.9 -o json
        """
        from hortus.domains.garden.acl.probing import ProbeDialing

        for option, addresses in (("--source", (source,)), ("--gateway", gateways), ("--claim", (claim,))):
            for one in filter(None, addresses):
                _checked(option, one, ip_address)
        dialing = ProbeDialing(timeout, source, tuple(map(_connection, connect_to)), gateways, claim)
        run(_probe(connect(), shoot, expect, dialing, without, ingress_domain, namespace, output))


async def _probe(
    connections: Connections,
    shoot: str,
    expected: str,
    dialing: ProbeDialing,
    without: tuple[int, ...],
    ingress_domain: str,
    namespace: str,
    output: OutputFormat,
) -> None:
    from hortus.domains.garden.acl import attempts
    from hortus.domains.garden.acl.probing import ABSENT, SourceAddressError, dashboards_unknown, probe

    found, seed = await _shoot_and_seed(connections, shoot, namespace, "give it with --ingress-domain")
    try:
        read = attempts.read_shoot(found)
    except ValueError as error:
        raise CommandError(str(error)) from None
    domain = ingress_domain or attempts.ingress_domain_of(seed)
    hosts = attempts.served_hosts(read, domain)
    try:
        rows = await probe(hosts, read.status.technical_id, attempts.header_ports(without), dialing)
    except SourceAddressError as error:
        raise CommandError(f"--source: {error}; give one that `ip address` shows") from None
    if not domain:
        rows.append(dashboards_unknown())
    wrong = [one for one in rows if one.state not in (expected, ABSENT)]
    _print_probe(rows, wrong, expected, output)
    if wrong or all(one.state == ABSENT for one in rows):
        raise click.exceptions.Exit(EXIT_ERROR)


def _print_probe(rows: list[Probed], wrong: list[Probed], expected: str, output: OutputFormat) -> None:
    import msgspec

    if not output.tabular:
        made = {"expected": expected, "asExpected": not wrong, "entryPoints": msgspec.to_builtins(rows)}
        plain(made, output)
        return
    lines = [
        (one.name, one.host or "-", one.address or "-", str(one.port or "-"), one.state, clean(one.detail))
        for one in rows
    ]
    print_table(Table(("Entry point", "Host", "Address", "Port", "State", "Reason"), lines))
    click.echo(f"{len(rows) - len(wrong)} of {len(rows)} are {expected}, or not there.")


def _connection(text: str) -> ConnectTo:
    from hortus.domains.garden.acl.probing import ConnectTo

    host, _, rest = text.partition(":")
    port, _, rest = rest.partition(":")
    address, _, address_port = rest.rpartition(":")
    if not address or not address_port.isdecimal() or not (port.isdecimal() or not port):
        raise CommandError(f"--connect-to {text}: must be HOST:PORT:ADDRESS:PORT, as :8443:127.0.0.1:18443")
    return ConnectTo(host, int(port or 0), address.strip("[]"), int(address_port))


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
    from hortus.domains.garden.acl.trying import try_list

    for one in always:
        _checked("--always", one, parse_cidr)
    found, seed = await _shoot_and_seed(connections, shoot, namespace, "give its networks with --always")
    return try_list(found, seed, config=_document(config), additional=always)


async def _shoot_and_seed(
    connections: Connections, shoot: str, namespace: str, fix: str
) -> tuple[Object, Object | None]:
    """A Shoot and its Seed, which may be hidden from the user: then `fix` is the way around."""
    from hortus.domains.garden.acl.trying import SEEDS, SHOOTS, seed_of
    from hortus.kube.errors import Forbidden, NotFound

    async with connections.garden() as garden:
        place = namespace or garden.access.namespace
        try:
            found = await garden.get(SHOOTS, shoot, place)
        except NotFound:
            raise CommandError(f"no Shoot {place}/{shoot} in the garden; choose a project with --namespace") from None
        name = seed_of(found)
        try:
            return found, await garden.get(SEEDS, name) if name else None
        except (Forbidden, NotFound):
            click.echo(f"Seed {name} is unknown to you: {fix}.", err=True)
            return found, None


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
