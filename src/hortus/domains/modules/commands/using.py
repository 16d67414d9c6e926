"""`hortus module add|remove|manage|unmanage|why`: changes of the modules of a cluster, for its owner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hortus.domains.modules.commands.community import MANIFEST, add_community, is_community_name, remove_community
from hortus.domains.modules.commands.places import CLUSTER, TIMEOUT, alias, kymas, listed_modules, offered_modules
from hortus.terminal import (
    DEFAULT_NAMESPACE,
    OUTPUT,
    CommandError,
    CommandGroup,
    Connect,
    Connections,
    OutputFormat,
    clean,
    completing,
    confirm,
    named,
    plain,
    print_line,
    run,
)

if TYPE_CHECKING:
    from hortus.domains.modules.using.session import ModuleSession
    from hortus.kube.objects import Object

_PATH = click.Path(path_type=Path)
_POLICIES = click.Choice(("CreateAndDelete", "Ignore"))


_LISTED = click.argument("name", metavar="MODULE", shell_complete=completing(listed_modules))


def register(module: CommandGroup, connect: Connect) -> None:
    """Add the commands to the group of modules."""
    _register_add(module, connect)
    _register_remove(module, connect)
    _register_management(module, connect)
    _register_why(module, connect)


def _register_add(module: CommandGroup, connect: Connect) -> None:
    @module.command()
    @click.argument("name", metavar="MODULE", shell_complete=completing(offered_modules))
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
    @MANIFEST
    @click.option(
        "--yes", "-y", "--auto-approve", "yes", is_flag=True, help="Do not ask before a community module is installed."
    )
    @click.option("--origin", hidden=True, default="")
    @click.option("--community", hidden=True, is_flag=True)
    @CLUSTER
    @TIMEOUT
    def add(**given: Any) -> None:
        """Add a module to a cluster, or change its channel.

        A community module is named by namespace and ModuleTemplate, as `pull` prints them. Without one of the two
        options for resources the module's operator is installed alone.

        \b
        hortus module add template-operator --default-config-cr
        hortus module add template-operator --channel fast --config-cr-path cr.yaml
        hortus module add default/cap-operator-0.15.0 --default-config-cr
        """
        if given["default_cr"] and given["cr_path"]:
            raise click.UsageError("--default-config-cr and --config-cr-path exclude each other")
        if given.pop("origin") or given.pop("community"):
            raise click.UsageError(
                "--origin and --community are no longer served: name the module by namespace and ModuleTemplate, as "
                "`hortus module pull` prints them"
            )
        run(_add(connect(), **given))

    alias(module, add, "enable")


def _register_remove(module: CommandGroup, connect: Connect) -> None:
    @module.command()
    @_LISTED
    @CLUSTER
    @TIMEOUT
    @MANIFEST
    @click.option("--community", hidden=True, is_flag=True)
    @click.option("--yes", "-y", "--auto-approve", "yes", is_flag=True, help="Do not ask for confirmation.")
    def remove(community: bool, **given: Any) -> None:
        """Remove a module from a cluster, with its resources.

        A community module is named by namespace and ModuleTemplate. While resources that somebody else made of the
        module's kinds are there, a module stays and `list` says so; those of a community module, and of one that was
        added without its default resource, are deleted as well.
        """
        if community:
            raise click.UsageError(
                "--community is no longer served: name the module by namespace and ModuleTemplate, as `hortus module "
                "catalog` lists them"
            )
        run(_remove(connect(), **given))

    alias(module, remove, "delete")


def _register_management(module: CommandGroup, connect: Connect) -> None:
    @module.command()
    @_LISTED
    @click.option(
        "--policy", type=_POLICIES, default="CreateAndDelete", help="Handling of the module's default resource."
    )
    @click.option("--channel", "-c", default="", metavar="NAME", help="Channel of a module that is not in the list.")
    @CLUSTER
    @TIMEOUT
    def manage(name: str, policy: str, channel: str, cluster: str, namespace: str, timeout: float) -> None:
        """Manage a module again that `unmanage` handed to its user.

        One that is installed and not in the Kyma's list is added to it, in a channel that has its version.
        """
        run(_manage(connect(), name, policy, channel, cluster, namespace, timeout))

    @module.command()
    @_LISTED
    @CLUSTER
    @TIMEOUT
    def unmanage(name: str, cluster: str, namespace: str, timeout: float) -> None:
        """Leave a module installed and hand its resources to their user.

        Nothing changes them any more: no upgrade, no repair, no removal.
        """
        run(_unmanage(connect(), name, cluster, namespace, timeout))


def _register_why(module: CommandGroup, connect: Connect) -> None:
    @module.command()
    @click.argument("cluster", metavar="KYMA", shell_complete=completing(kymas))
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


async def _add(
    connections: Connections,
    *,
    name: str,
    channel: str,
    cr_path: Path | None,
    cluster: str,
    namespace: str,
    timeout: float,
    manifest: Path | None,
    default_cr: bool,
    yes: bool,
) -> None:
    from hortus.domains.modules.using.resources import read_objects
    from hortus.domains.modules.using.session import open_session

    resources = read_objects(cr_path) if cr_path else []
    community = is_community_name(name)
    if community and channel:
        raise CommandError("community modules have no channels: leave out --channel")
    if manifest and not community:
        raise CommandError("--manifest is for community modules, which are named by namespace and ModuleTemplate")
    async with open_session(connections, cluster, namespace) as session:
        if community:
            await add_community(session, name, manifest, resources, timeout, default_cr=default_cr, yes=yes)
        else:
            await _add_listed(session, name, channel, resources, timeout, default_cr=default_cr)


async def _add_listed(
    session: ModuleSession, name: str, channel: str, resources: list[Object], seconds: float, *, default_cr: bool
) -> None:
    from hortus.domains.modules.names import CustomResourcePolicy
    from hortus.domains.modules.using.editing import listing
    from hortus.domains.modules.using.installed import is_settled
    from hortus.domains.modules.using.objects import ModuleObjects
    from hortus.domains.modules.using.session import status_of

    policy = CustomResourcePolicy.CREATE_AND_DELETE if default_cr else CustomResourcePolicy.IGNORE
    await _check_offer(session, name, channel)
    kyma = await session.edit(lambda kyma: listing(kyma, name, channel=channel, policy=policy))
    click.echo(f"module {name} is in the list; waiting until it is installed")
    wanted, before = channel or kyma.spec.channel, status_of(kyma, name)
    status = await session.await_module(name, lambda found: is_settled(found, wanted, before), seconds)
    for line in await ModuleObjects(session.client, seconds=seconds).apply(resources):
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
    connections: Connections,
    *,
    name: str,
    cluster: str,
    namespace: str,
    timeout: float,
    manifest: Path | None,
    yes: bool,
) -> None:
    from hortus.domains.modules.using.session import open_session

    async with open_session(connections, cluster, namespace) as session:
        if is_community_name(name):
            await remove_community(session, name, manifest, timeout, yes=yes)
        else:
            await _remove_listed(session, name, timeout, yes=yes)


async def _remove_listed(session: ModuleSession, name: str, seconds: float, *, yes: bool) -> None:
    from hortus.domains.modules.names import CustomResourcePolicy
    from hortus.domains.modules.using.editing import ModuleNotListed, entry_of, unlisting
    from hortus.domains.modules.using.finding import resources_of
    from hortus.domains.modules.using.objects import ModuleObjects

    kyma = await session.kyma()
    try:
        entry = entry_of(kyma, name)
    except ModuleNotListed as error:
        raise CommandError(str(error)) from None
    found = []
    if entry.custom_resource_policy == CustomResourcePolicy.IGNORE and entry.managed:
        found = await resources_of(session, kyma, name)
    if found:
        click.echo(clean(f"these resources are deleted too: {', '.join(one.name for one in found)}"), err=True)
    confirm(f"Remove module {name} and all that it installed from {session.client.host}?", yes=yes)
    for line in await ModuleObjects(session.client, seconds=seconds).delete([one.obj for one in found]):
        click.echo(clean(line))
    await session.edit(lambda kyma: unlisting(kyma, name))
    click.echo(f"module {name} removed from the list; waiting until its resources are gone")
    await session.await_module(name, lambda found: found is None, seconds)
    click.echo(f"module {name} is gone")


async def _manage(
    connections: Connections, name: str, policy: str, channel: str, cluster: str, namespace: str, seconds: float
) -> None:
    from hortus.domains.modules.names import CustomResourcePolicy
    from hortus.domains.modules.using.editing import ModuleNotListed, entry_of, listing
    from hortus.domains.modules.using.installed import is_installed
    from hortus.domains.modules.using.session import open_session

    async with open_session(connections, cluster, namespace) as session:
        try:
            entry_of(await session.kyma(), name)
        except ModuleNotListed as error:
            await _check_installed(session, name, channel, str(error))
        chosen = CustomResourcePolicy(policy)
        await session.edit(lambda kyma: listing(kyma, name, channel=channel, policy=chosen))
        status = await session.await_module(name, is_installed, seconds)
    print_line(f"module {name} is managed; it is {status.state if status else 'gone'}")


async def _check_installed(session: ModuleSession, name: str, channel: str, problem: str) -> None:
    """Raises CommandError unless the module is installed in the version that the channel has."""
    from hortus.domains.modules.using.finding import installed_version

    version = await installed_version(session, name)
    if not version:
        raise CommandError(f"{problem}; `hortus module add` installs it")
    await _check_offer(session, name, channel)
    wanted = channel or (await session.kyma()).spec.channel
    release = next(one for one in await session.releases() if one.metadata.name == name)
    offered = {one.channel: one.version for one in release.spec.channels}
    if offered[wanted] != version:
        fitting = ", ".join(sorted(one for one, found in offered.items() if found == version)) or "none"
        raise CommandError(
            f"module {name} is installed in version {version}, and channel {wanted} has {offered[wanted]}; name a "
            f"channel with --channel; those with {version}: {fitting}"
        )


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
