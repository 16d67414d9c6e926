"""`hortus module list|catalog|add|remove|manage|unmanage`: the modules of a cluster, for its owner."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hortus.terminal import (
    DEFAULT_NAMESPACE,
    OUTPUT,
    CommandError,
    CommandGroup,
    Connect,
    Connections,
    OutputFormat,
    Table,
    clean,
    completing,
    confirm,
    named,
    names_of,
    plain,
    print_table,
    run,
    timeout,
    together,
)

if TYPE_CHECKING:
    from hortus.domains.modules.using.session import ModuleSession

_PATH = click.Path(path_type=Path)
_POLICIES = click.Choice(("CreateAndDelete", "Ignore"))


async def _modules(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.domains.modules.using.session import open_session

    async with open_session(connections, given.get("cluster") or "", DEFAULT_NAMESPACE) as session:
        return [module.name for module in (await session.kyma()).spec.modules]


async def _offered(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.domains.modules.using.session import open_session

    async with open_session(connections, given.get("cluster") or "", DEFAULT_NAMESPACE) as session:
        return [release.metadata.name for release in await session.releases()]


_CLUSTER = together(
    click.option(
        "--cluster",
        default="",
        metavar="KYMA",
        help="Work on the cluster of this Kyma of a control plane; without it on the kubeconfig's own cluster.",
    ),
    click.option("--namespace", "-n", default=DEFAULT_NAMESPACE, help="With --cluster: namespace of the Kyma."),
)
_LISTED = click.argument("name", metavar="MODULE", shell_complete=completing(_modules))
_TIMEOUT = timeout("100s")


def register(module: CommandGroup, connect: Connect) -> None:
    """Add the commands to the group of modules."""
    _register_tables(module, connect)
    _register_add(module, connect)
    _register_remove(module, connect)
    _register_management(module, connect)
    _register_why(module, connect)


def _alias(module: CommandGroup, command: click.Command, name: str) -> None:
    """Add a command under the name that other programs give it, which help does not list."""
    same = copy.copy(command)
    same.hidden = True
    module.add_command(same, name)


def _register_tables(module: CommandGroup, connect: Connect) -> None:
    @module.command("list")
    @_CLUSTER
    @click.option("--show-errors", is_flag=True, help="Print the reason of each state that needs somebody.")
    @OUTPUT
    def list_(cluster: str, namespace: str, show_errors: bool, output: OutputFormat) -> None:
        """List the modules of a cluster.

        INSTALLATION STATUS is that of the module's operator, MODULE STATUS that of its default resource.

        \b
        hortus module list --cluster demo-1
        """
        run(_list(connect(), cluster, namespace, output, show_errors=show_errors))

    @module.command()
    @_CLUSTER
    @OUTPUT
    def catalog(cluster: str, namespace: str, output: OutputFormat) -> None:
        """List the modules that a cluster is offered, with their channels."""
        run(_catalog(connect(), cluster, namespace, output))


def _register_add(module: CommandGroup, connect: Connect) -> None:
    @module.command()
    @click.argument("name", metavar="MODULE", shell_complete=completing(_offered))
    @click.option("--channel", "-c", default="", metavar="NAME", help="Channel; the Kyma's without it.")
    @click.option(
        "--default-config-cr", "--default-cr", "default_cr", is_flag=True, help="Create the module's default resource."
    )
    @click.option(
        "--config-cr-path",
        "--cr-path",
        "cr_path",
        type=_PATH,
        metavar="FILE",
        help="Create the resources of this file once the module is installed.",
    )
    @_CLUSTER
    @_TIMEOUT
    def add(
        name: str, channel: str, default_cr: bool, cr_path: Path | None, cluster: str, namespace: str, timeout: float
    ) -> None:
        """Add a module to a cluster, or change its channel.

        Without one of the two options for resources the module's operator is installed alone.

        \b
        hortus module add template-operator --default-config-cr
        hortus module add template-operator --channel fast --config-cr-path cr.yaml
        """
        if default_cr and cr_path:
            raise click.UsageError("--default-config-cr and --config-cr-path exclude each other")
        run(_add(connect(), name, cluster, namespace, channel, cr_path, timeout, default_cr=default_cr))

    _alias(module, add, "enable")


def _register_remove(module: CommandGroup, connect: Connect) -> None:
    @module.command()
    @_LISTED
    @_CLUSTER
    @_TIMEOUT
    @click.option("--yes", "-y", "--auto-approve", "yes", is_flag=True, help="Do not ask for confirmation.")
    def remove(name: str, cluster: str, namespace: str, timeout: float, yes: bool) -> None:
        """Remove a module from a cluster, with its resources.

        While resources that somebody else made of the module's kinds are there, it stays and `list` says so.
        """
        run(_remove(connect(), name, cluster, namespace, timeout, yes=yes))

    _alias(module, remove, "delete")


def _register_management(module: CommandGroup, connect: Connect) -> None:
    @module.command()
    @_LISTED
    @click.option(
        "--policy", type=_POLICIES, default="CreateAndDelete", help="Handling of the module's default resource."
    )
    @_CLUSTER
    @_TIMEOUT
    def manage(name: str, policy: str, cluster: str, namespace: str, timeout: float) -> None:
        """Manage a module again that `unmanage` handed to its user."""
        run(_manage(connect(), name, policy, cluster, namespace, timeout))

    @module.command()
    @_LISTED
    @_CLUSTER
    @_TIMEOUT
    def unmanage(name: str, cluster: str, namespace: str, timeout: float) -> None:
        """Leave a module installed and hand its resources to their user.

        Nothing changes them any more: no upgrade, no repair, no removal.
        """
        run(_unmanage(connect(), name, cluster, namespace, timeout))


def _register_why(module: CommandGroup, connect: Connect) -> None:
    @module.command()
    @click.argument("cluster", metavar="KYMA", shell_complete=completing(_kymas))
    @click.argument("name", metavar="MODULE")
    @click.option("--namespace", "-n", default=DEFAULT_NAMESPACE, help="Namespace of the Kyma.")
    @OUTPUT
    def why(cluster: str, name: str, namespace: str, output: OutputFormat) -> None:
        """Explain the state of a module on a cluster and name the owner of the next step.

        For the operator of a control plane: it reads the Kyma, the catalog and the Manifest there.

        \b
        hortus module why demo-1 template-operator
        """
        run(_why(connect(), cluster, name, namespace, output))


async def _kymas(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.domains.modules.types import KYMAS

    return await names_of(KYMAS, connections, given.get("namespace") or DEFAULT_NAMESPACE)


async def _list(
    connections: Connections, cluster: str, namespace: str, output: OutputFormat, *, show_errors: bool
) -> None:
    from hortus.domains.modules.using.installed import HEADS, installed, problems
    from hortus.domains.modules.using.session import open_session

    async with open_session(connections, cluster, namespace) as session:
        kyma = await session.kyma()
        rows = installed(kyma, await session.resource_states(kyma.status.modules))
    if not output.tabular:
        plain([row.summary() for row in rows], output)
    elif rows:
        print_table(Table(HEADS, [row.row for row in rows]))
    else:
        click.echo("No modules. See what is offered: hortus module catalog", err=True)
    found = problems(rows)
    if show_errors:
        for line in found:
            click.echo(clean(line), err=True)
    elif found and output.tabular and sys.stderr.isatty():
        click.echo("Some modules need somebody; the reasons: --show-errors", err=True)


async def _catalog(connections: Connections, cluster: str, namespace: str, output: OutputFormat) -> None:
    from hortus.domains.modules.using.offers import HEADS, offers
    from hortus.domains.modules.using.session import open_session

    async with open_session(connections, cluster, namespace) as session:
        found = offers(await session.releases(), await session.templates())
    if not output.tabular:
        plain([offer.summary() for offer in found], output)
    elif found:
        print_table(Table(HEADS, [offer.row for offer in found]))
    else:
        click.echo("The cluster is offered no modules: its catalog is empty, or not copied to it yet.", err=True)


async def _add(
    connections: Connections,
    name: str,
    cluster: str,
    namespace: str,
    channel: str,
    cr_path: Path | None,
    seconds: float,
    *,
    default_cr: bool,
) -> None:
    from hortus.domains.modules.names import CustomResourcePolicy
    from hortus.domains.modules.using.editing import listing
    from hortus.domains.modules.using.installed import is_settled
    from hortus.domains.modules.using.resources import create_all, read_objects
    from hortus.domains.modules.using.session import open_session, status_of

    objects = read_objects(cr_path) if cr_path else []
    policy = CustomResourcePolicy.CREATE_AND_DELETE if default_cr else CustomResourcePolicy.IGNORE
    async with open_session(connections, cluster, namespace) as session:
        await _check_offer(session, name, channel)
        kyma = await session.edit(lambda kyma: listing(kyma, name, channel=channel, policy=policy))
        click.echo(f"module {name} is in the list; waiting until it is installed")
        wanted, before = channel or kyma.spec.channel, status_of(kyma, name)
        status = await session.await_module(name, lambda found: is_settled(found, wanted, before), seconds)
        for line in await create_all(session.client, objects):
            click.echo(clean(line))
    assert status is not None
    reason = f": {status.message}" if status.message else ""
    version = f"{status.version} from channel {status.channel}"
    click.echo(clean(f"module {name} is {status.state}{reason}; installed is {version}"))
    if status.channel != wanted:
        raise CommandError(f"module {name} was not moved to channel {wanted}")


async def _check_offer(session: ModuleSession, name: str, channel: str) -> None:
    releases = {release.metadata.name: release for release in await session.releases()}
    if name not in releases:
        known = ", ".join(sorted(releases)) or "none"
        raise CommandError(f"module {name} is not in the catalog of this cluster; offered are: {known}")
    wanted = channel or (await session.kyma()).spec.channel
    offered = [one.channel for one in releases[name].spec.channels]
    if wanted not in offered:
        raise CommandError(f"module {name} has no channel {wanted}; its channels are: {', '.join(sorted(offered))}")


async def _remove(
    connections: Connections, name: str, cluster: str, namespace: str, seconds: float, *, yes: bool
) -> None:
    from hortus.domains.modules.using.editing import ModuleNotListed, entry_of, unlisting
    from hortus.domains.modules.using.session import open_session

    async with open_session(connections, cluster, namespace) as session:
        try:
            entry_of(await session.kyma(), name)
        except ModuleNotListed as error:
            raise CommandError(str(error)) from None
        confirm(f"Remove module {name} and all that it installed from {session.client.host}?", yes=yes)
        await session.edit(lambda kyma: unlisting(kyma, name))
        click.echo(f"module {name} removed from the list; waiting until its resources are gone")
        await session.await_module(name, lambda found: found is None, seconds)
    click.echo(f"module {name} is gone")


async def _manage(
    connections: Connections, name: str, policy: str, cluster: str, namespace: str, seconds: float
) -> None:
    from hortus.domains.modules.names import CustomResourcePolicy
    from hortus.domains.modules.using.editing import listing
    from hortus.domains.modules.using.installed import is_installed
    from hortus.domains.modules.using.session import open_session

    async with open_session(connections, cluster, namespace) as session:
        await session.edit(lambda kyma: listing(kyma, name, policy=CustomResourcePolicy(policy)))
        status = await session.await_module(name, is_installed, seconds)
    click.echo(f"module {name} is managed; it is {status.state if status else 'gone'}")


async def _unmanage(connections: Connections, name: str, cluster: str, namespace: str, seconds: float) -> None:
    from hortus.domains.modules.using.editing import unmanaging
    from hortus.domains.modules.using.installed import is_unmanaged
    from hortus.domains.modules.using.session import open_session

    async with open_session(connections, cluster, namespace) as session:
        await session.edit(lambda kyma: unmanaging(kyma, name))
        await session.await_module(name, is_unmanaged, seconds)
    click.echo(f"module {name} is unmanaged: its resources stay, and nothing changes them any more")


async def _why(connections: Connections, cluster: str, name: str, namespace: str, output: OutputFormat) -> None:
    import msgspec

    from hortus.domains.modules.types import KYMAS, Kyma
    from hortus.domains.modules.using.control import explained
    from hortus.engine import read

    async with connections.management() as client:
        kyma = read(Kyma, await named(client, KYMAS, cluster, namespace))
        explanation = await explained(client, kyma, name)
    if output.tabular:
        for line in explanation.lines():
            click.echo(clean(line))
    else:
        plain(msgspec.to_builtins(explanation), output)
