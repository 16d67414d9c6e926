"""`hortus install` and `hortus uninstall`: Hortus on a cluster, without Helm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hortus.terminal import (
    OUTPUT,
    YES,
    CommandError,
    CommandGroup,
    Connect,
    Duration,
    OutputFormat,
    confirm,
    output_formats,
    plain,
    refuse,
    run,
    timeout,
)

if TYPE_CHECKING:
    from hortus.cli.install.applying import Installation, PlannedChange
    from hortus.cli.install.checks import Finding
    from hortus.kube import Client
    from hortus.kube.objects import Object

_PANEL = "In production"
_CONNECTIONS = ("kubeconfig", "context", "garden_kubeconfig", "garden_project", "state_dir")

_NAMESPACE = click.option("--namespace", "-n", default="hortus-system", help="Namespace that Hortus runs in.")
_VALUES = click.option(
    "--values",
    "-f",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Values of the chart; may be repeated.",
)
_SET = click.option(
    "--set", "settings", multiple=True, metavar="NAME=YAML", help="One value, as image.tag=v1; may be repeated."
)


def register(app: CommandGroup, connect: Connect) -> None:
    _add_install(app, connect)
    _add_check(app, connect)
    _add_uninstall(app, connect)


def _add_install(app: CommandGroup, connect: Connect) -> None:
    @app.command(panel=_PANEL)
    @_NAMESPACE
    @_VALUES
    @_SET
    @click.option("--export", is_flag=True, help="Print the objects instead of applying them.")
    @output_formats("yaml", "json", when="With --export: ")
    @click.option(
        "--garden-account",
        default="",
        metavar="PROJECT",
        help="Install only Hortus' account in this project of the garden.",
    )
    @click.option(
        "--write-kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="With --garden-account: write a kubeconfig with a token of the account.",
    )
    @click.option(
        "--duration",
        type=Duration(least=600.0),
        default="2160h",
        metavar="DURATION",
        help="Lifetime of that token; the garden may shorten it.",
    )
    @click.option("--diff", is_flag=True, help="Show the changes and do nothing; exit code 1 if there are any.")
    @click.option("--wait/--no-wait", default=True, help="Wait until Hortus is ready.")
    @timeout("5m")
    def install(
        namespace: str,
        values: tuple[Path, ...],
        settings: tuple[str, ...],
        export: bool,
        output: OutputFormat,
        garden_account: str,
        write_kubeconfig: Path | None,
        duration: float,
        diff: bool,
        wait: bool,
        timeout: float,
    ) -> None:
        """Install or upgrade Hortus on the management cluster.

        The objects are those of the chart charts/hortus, with its values, and no Helm is needed. Everything is tried as
        a dry run before the first write. A repeated run changes only what differs and prunes
        objects that the values no longer ask for.

        \b
        Look first:
          hortus install --export --set garden.projectName=demo
        Compare:
          hortus --kubeconfig mgmt.yaml install --set garden.projectName=demo --diff
        Then:
          hortus --kubeconfig mgmt.yaml install --set garden.projectName=demo
        The garden:
          hortus --garden-kubeconfig admin.yaml install --garden-account demo \\
            --write-kubeconfig garden.yaml
        """
        if write_kubeconfig and not garden_account:
            raise click.UsageError("--write-kubeconfig needs --garden-account PROJECT")

        # Before the event loop, which answers Ctrl-C later than Python itself.
        from hortus.cli.install.chart import objects, values_of
        from hortus.cli.install.garden import account

        if export:
            refuse(_CONNECTIONS, "--export prints the objects and connects to no cluster")

        async def work() -> None:
            found = account(garden_account) if garden_account else objects(namespace, values_of(values, settings))
            if export:
                _print(found, output)
                return
            connections = connect()
            client = connections.garden() if garden_account else connections.management()
            from hortus.cli.install.applying import Installation

            async with client:
                installation = Installation(client, found, click.echo, namespace="" if garden_account else namespace)
                if diff:
                    _show(await installation.plan())
                    return
                await installation.apply()
                if write_kubeconfig:
                    await _write(client, garden_account, write_kubeconfig, int(duration))
                if not garden_account:
                    await _start(installation, client, found, namespace, timeout if wait else 0.0)

        run(work())


async def _write(client: Client, project: str, path: Path, seconds: int) -> None:
    """Raises CommandError, KubeError."""
    from hortus.cli.install.garden import write_kubeconfig

    try:
        expiry = await write_kubeconfig(client, project, path, seconds)
    except OSError as error:
        raise CommandError(f"--write-kubeconfig {path}: cannot be written: {error.strerror}") from None
    click.echo(f"{path} written; its token expires at {expiry}")


async def _start(
    installation: Installation, client: Client, found: list[Object], namespace: str, timeout: float
) -> None:
    """Print the kinds that are served, and wait `timeout` s for the pods. Raises CommandError if they cannot start."""
    from hortus import __version__
    from hortus.cli.install.checks import starting

    blocked = False
    async for finding in starting(client, found, namespace):
        click.echo(_line(finding))
        blocked |= finding.state == "failed"
    if timeout and blocked:
        raise CommandError(
            "Hortus is installed, and its pods cannot start before what failed is mended; then run: "
            f"hortus check -n {namespace}"
        )
    if timeout:
        await installation.ready(timeout)
        click.echo(f"Hortus {__version__} is ready in {namespace}")


def _line(finding: Finding) -> str:
    return f"{finding.state:<9}{finding.subject:<19}{finding.text}"


def _add_check(app: CommandGroup, connect: Connect) -> None:
    @app.command(panel=_PANEL)
    @_NAMESPACE
    @_VALUES
    @_SET
    @OUTPUT
    def check(namespace: str, values: tuple[Path, ...], settings: tuple[str, ...], output: OutputFormat) -> None:
        """Check an installation, or what one would need, and print the fix of each problem.

        Looks at the API server, the CRDs, the configuration, the watched namespace, the garden's Secret and what its
        account may do, the controllers' own permissions and the Deployment, and says which kinds are served. Writes
        nothing. Exit code 1 when a check failed; warnings do not count.

        \b
        Before:  hortus --kubeconfig mgmt.yaml check -f values.yaml
        After:   hortus --kubeconfig mgmt.yaml check
        """
        from hortus.cli.install.chart import objects, values_of

        async def work() -> bool:
            from hortus.cli.install.checks import check as findings

            found = objects(namespace, values_of(values, settings))
            results = []
            async with connect().management() as client:
                async for finding in findings(client, found, namespace):
                    results.append(finding)
                    if output.tabular:
                        click.echo(_line(finding))
            if not output.tabular:
                plain([finding._asdict() for finding in results], output)
            return all(finding.state != "failed" for finding in results)

        if not run(work()):
            raise click.exceptions.Exit(1)


def _add_uninstall(app: CommandGroup, connect: Connect) -> None:
    @app.command(panel=_PANEL)
    @_NAMESPACE
    @click.option(
        "--delete-crds", is_flag=True, help="Delete the CRDs too; refused while objects of their kinds exist."
    )
    @click.option("--delete-namespace", is_flag=True, help="Delete the namespace too, with the Secrets in it.")
    @click.option(
        "--garden-account",
        default="",
        metavar="PROJECT",
        help="Delete only Hortus' account in this project of the garden.",
    )
    @YES
    @timeout("2m")
    def uninstall(
        namespace: str, delete_crds: bool, delete_namespace: bool, garden_account: str, yes: bool, timeout: float
    ) -> None:
        """Uninstall Hortus from the management cluster.

        Deletes what `hortus install` made, lists it first and asks. The CRDs and all objects of their kinds, the
        namespaces and the garden's Secret stay unless an option says otherwise.

        \b
        Hortus alone:
          hortus --kubeconfig mgmt.yaml uninstall
        All traces:
          hortus --kubeconfig mgmt.yaml uninstall --delete-crds --delete-namespace
        The garden:
          hortus --garden-kubeconfig garden.yaml uninstall --garden-account demo
        """
        from hortus.cli.install.removing import Removal, remove_account

        async def account() -> None:
            async with connect().garden() as client:
                confirm(f"Delete Hortus' account in project {garden_account} of {client.host}?", yes=yes)
                await remove_account(client, garden_account, click.echo)

        async def work() -> None:
            async with connect().management() as client:
                removal = Removal(client, namespace, crds=delete_crds, own_namespace=delete_namespace)
                plan = await removal.plan()
                if not yes:
                    _list(f"This is deleted from {client.host}:", plan.deleted)
                    _list("This stays:", plan.kept)
                confirm(f"Uninstall Hortus from namespace {namespace} of {client.host}?", yes=yes)
                await removal.apply(click.echo, timeout=timeout)
                if plan.kept and yes:
                    _list("This stays:", plan.kept)

        run(account() if garden_account else work())


def _list(title: str, lines: Sequence[str]) -> None:
    if lines:
        click.echo(title)
        for line in lines:
            click.echo(f"  {line}")


def _show(changes: list[PlannedChange]) -> None:
    """Prints the changes. Raises click.exceptions.Exit with code 1 if there are any."""
    changed = [change for change in changes if change.verb != "unchanged"]
    for change in changed:
        click.echo(f"{change.title} would be {change.verb}")
        for field in change.fields:
            click.echo(f"  {field}")
    click.echo(f"{len(changed)} of {len(changes)} objects would change" if changed else "nothing would change")
    if changed:
        raise click.exceptions.Exit(1)


def _print(objects: list[Object], format: OutputFormat) -> None:
    if format.name == "json":
        plain({"apiVersion": "v1", "kind": "List", "items": objects}, format)
        return
    for obj in objects:
        click.echo("---")
        plain(obj, format)
