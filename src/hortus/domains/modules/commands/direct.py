"""`hortus module install|upgrade|uninstall|status`: modules on a cluster that no control plane manages."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hortus.terminal import (
    CommandError,
    CommandGroup,
    Connect,
    Connections,
    OutputFormat,
    Table,
    clean,
    completing,
    confirm,
    output_formats,
    plain,
    print_table,
    run,
    timeout,
    together,
)

if TYPE_CHECKING:
    from hortus.domains.modules.direct.cluster import DirectCluster
    from hortus.domains.modules.direct.packages import ModulePackage, SourceOptions
    from hortus.domains.modules.registry import RegistryAccess

_PATH = click.Path(path_type=Path)
_SOURCE = together(
    click.argument("source", metavar="SOURCE"),
    click.option("--registry", "-r", default="", metavar="ADDRESS", help="Registry of a component named NAME:VERSION."),
    click.option("--docker-config", type=_PATH, metavar="FILE", help="Credentials, as docker keeps them."),
    click.option("--channel", "-c", default="", metavar="NAME", help="Channel of a module of the cluster's catalog."),
    click.option("--name", default="", metavar="MODULE", help="Name of the module in a plain manifest."),
    click.option("--module-version", default="", metavar="VERSION", help="Version of the module in a plain manifest."),
    click.option("--manifest", default="", metavar="PLACE", help="File or https address with a template's objects."),
    click.option("--digest", default="", metavar="SHA256", help="Refuse a source that has another digest."),
    click.option(
        "--default-config-cr/--no-default-config-cr",
        "default_cr",
        default=True,
        help="Create the module's default resource.",
    ),
    click.option("--take-over", is_flag=True, help="Take objects that a control plane has marked as its own."),
    click.option("--dry-run", is_flag=True, help="Ask the server for everything and change nothing."),
    click.option("--wait/--no-wait", default=True, help="Wait until all objects are ready."),
    timeout("5m"),
    output_formats("table", "json", "yaml"),
)


class _Order(NamedTuple):
    """The options of install and upgrade."""

    source: str
    registry: str
    docker_config: Path | None
    channel: str
    name: str
    module_version: str
    manifest: str
    digest: str
    default_cr: bool
    take_over: bool
    dry_run: bool
    wait: bool
    timeout: float
    output: OutputFormat


def register(module: CommandGroup, connect: Connect) -> None:
    """Add the commands to the group of modules."""
    _register_install(module, connect)
    _register_uninstall(module, connect)
    _register_status(module, connect)


def _register_install(module: CommandGroup, connect: Connect) -> None:
    @module.command()
    @_SOURCE
    def install(**given: Any) -> None:
        """Install a module on this cluster, without a control plane.

        SOURCE is a component NAME:VERSION of a registry, a file or https address, or a module of the cluster's
        catalog. What was installed is recorded in the cluster; the same command again repairs it.

        \b
        hortus module install kyma-project.io/module/hello:1.0.0 \\
          --registry registry.example.org/modules
        hortus module install ./template.yaml --manifest ./manifest.yaml
        hortus module install template-operator --channel fast --dry-run
        """
        run(_install(connect(), _Order(**given), upgrade=False))

    @module.command()
    @_SOURCE
    def upgrade(**given: Any) -> None:
        """Upgrade a module that `install` has installed; objects that left it are deleted.

        \b
        hortus module upgrade kyma-project.io/module/hello:1.1.0
        """
        run(_install(connect(), _Order(**given), upgrade=True))


def _register_uninstall(module: CommandGroup, connect: Connect) -> None:
    @module.command()
    @click.argument("name", metavar="MODULE", shell_complete=completing(_recorded))
    @timeout("5m")
    @click.option("--yes", "-y", "--auto-approve", "yes", is_flag=True, help="Do not ask for confirmation.")
    def uninstall(name: str, timeout: float, yes: bool) -> None:
        """Remove a module that `install` has installed, with its default resource.

        Refused while resources of its kind exist that somebody else made.
        """
        run(_uninstall(connect(), name, timeout, yes=yes))


def _register_status(module: CommandGroup, connect: Connect) -> None:
    @module.command()
    @click.argument("name", metavar="[MODULE]", default="", shell_complete=completing(_recorded))
    @output_formats("table", "json", "yaml")
    def status(name: str, output: OutputFormat) -> None:
        """Show the modules that `install` has installed; with MODULE the state of each object."""
        run(_status(connect(), name, output))


async def _recorded(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.domains.modules.direct.records import Records

    async with connections.management() as client:
        return [one.record.module for one in await Records(client).all()]


async def _install(connections: Connections, order: _Order, *, upgrade: bool) -> None:
    from hortus.domains.modules.direct.installing import DirectInstaller
    from hortus.domains.modules.direct.showing import outcomes

    async with _open(connections, take_over=order.take_over) as cluster:
        package = await _package(connections, cluster, order)
        installer = DirectInstaller(cluster, say=_say(order.output), seconds=order.timeout)
        stored = await installer.check(package, upgrade=upgrade)
        report = await installer.plan(package, stored)
        if not order.dry_run:
            report = await installer.install(package, stored, default_resource=order.default_cr, wait=order.wait)
    if not order.output.tabular:
        facts = {"module": package.name, "version": package.version, "digest": package.digest, "source": package.origin}
        plain({**facts, "dryRun": order.dry_run, "objects": outcomes(report)}, order.output)
        return
    for one in report.outcomes if order.dry_run else ():
        click.echo(clean(one.message or f"{one.member}: {one.action.value}"))
    done = "would be installed" if order.dry_run else "is Ready" if order.wait else "is applied"
    click.echo(clean(f"module {package.name} {package.version} {done}: {_counted(report)}"))


def _counted(report: Any) -> str:
    counts: dict[str, int] = {}
    for one in report.outcomes:
        counts[one.action.value] = counts.get(one.action.value, 0) + 1
    return ", ".join(f"{number} {action}" for action, number in counts.items()) or "nothing to do"


async def _uninstall(connections: Connections, name: str, seconds: float, *, yes: bool) -> None:
    from hortus.domains.modules.direct.installing import DirectInstaller

    async with _open(connections) as cluster:
        stored = await cluster.records.get(name)
        if stored is None:
            known = ", ".join(one.record.module for one in await cluster.records.all()) or "none"
            raise CommandError(f"module {name} was not installed by this command; installed are: {known}")
        await cluster.open()
        await cluster.check_unmanaged(name)
        installer = DirectInstaller(cluster, say=click.echo, seconds=seconds)
        if users := await installer.users_of(stored):
            raise CommandError(f"module {name} is in use: delete {', '.join(users[:10])} first")
        confirm(f"Remove module {name} and all that it installed from {cluster.client.host}?", yes=yes)
        await installer.remove(stored)
    click.echo(f"module {name} is gone")


async def _status(connections: Connections, name: str, output: OutputFormat) -> None:
    from hortus.domains.modules.direct.showing import HEADS, OBJECT_HEADS, module_row

    async with _open(connections) as cluster:
        stored = await cluster.records.all()
        if name:
            stored = [one for one in stored if one.record.module == name]
            if not stored:
                raise CommandError(f"module {name} was not installed by this command; see hortus module status")
        rows = [await module_row(cluster, one) for one in stored]
    if not output.tabular:
        plain([row.summary() for row in rows], output)
    elif name:
        print_table(Table(OBJECT_HEADS, [list(one) for one in rows[0].objects]))
    elif rows:
        print_table(Table(HEADS, [row.row for row in rows]))
    else:
        click.echo("No modules were installed without a control plane. See: hortus module install --help", err=True)


@contextlib.asynccontextmanager
async def _open(connections: Connections, *, take_over: bool = False) -> AsyncIterator[DirectCluster]:
    from hortus.domains.modules.direct.cluster import DirectCluster

    async with connections.management() as client:
        yield DirectCluster(client, take_over=take_over)


def _say(output: OutputFormat) -> Callable[[str], None]:
    """Progress goes where it is not mixed with JSON."""
    return lambda text: click.echo(clean(text), err=not output.tabular)


async def _package(connections: Connections, cluster: DirectCluster, order: _Order) -> ModulePackage:
    from hortus.domains.modules.direct.catalog import package_of_catalog
    from hortus.domains.modules.direct.packages import (
        is_document,
        is_reference,
        package_of_document,
        package_of_reference,
    )

    options = _options(connections, order)
    if is_reference(order.source):
        return await package_of_reference(order.source, options)
    if is_document(order.source):
        return await package_of_document(order.source, options)
    return await package_of_catalog(cluster.client, order.source, order.channel, options)


def _options(connections: Connections, order: _Order) -> SourceOptions:
    from hortus.domains.modules.direct.packages import SourceOptions
    from hortus.domains.modules.publishing.files import credentials_file
    from hortus.domains.modules.publishing.sources import BadSource

    try:
        credentials = credentials_file(order.docker_config)
    except BadSource as error:
        raise CommandError(str(error)) from None
    return SourceOptions(
        access=_access(connections, order.registry, credentials),
        docker_config=credentials,
        name=order.name,
        version=order.module_version,
        manifest=order.manifest,
        digest=order.digest,
    )


def _access(connections: Connections, address: str, credentials: bytes) -> RegistryAccess | None:
    """The registry that is named, or that of `hortus up`; None without both."""
    from hortus.domains import REGISTRY_FILE
    from hortus.domains.modules.registry import BadRegistryAccess, access_from_docker_config, access_from_host

    try:
        if address:
            return access_from_host(address, docker_config=credentials)
        return access_from_docker_config((connections.local_state / REGISTRY_FILE).read_bytes())
    except BadRegistryAccess as error:
        raise CommandError(str(error)) from None
    except OSError:
        return None
