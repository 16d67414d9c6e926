"""`hortus install` and `hortus uninstall`: Hortus on a cluster, without Helm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hortus.terminal import CommandGroup, Connections, OutputFormat, plain, run, timeout

if TYPE_CHECKING:
    from hortus.cli.install.applying import PlannedChange
    from hortus.kube.objects import Object

Connect = Callable[[], Connections]
_PANEL = "In production"

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
    @click.option("--output", "-o", default="yaml", help="With --export: yaml or json.")
    @click.option(
        "--garden-account",
        default="",
        metavar="PROJECT",
        help="Install only Hortus' account in this project of the garden.",
    )
    @click.option("--diff", is_flag=True, help="Show the changes and do nothing; exit code 1 if there are any.")
    @click.option("--wait/--no-wait", default=True, help="Wait until Hortus is ready.")
    @timeout(300.0)
    def install(
        namespace: str,
        values: tuple[Path, ...],
        settings: tuple[str, ...],
        export: bool,
        output: str,
        garden_account: str,
        diff: bool,
        wait: bool,
        timeout: float,
    ) -> None:
        """Install or upgrade Hortus on the management cluster.

        The objects are those of the chart charts/hortus, with its values, and no Helm is needed. Everything is tried as
        a dry run before the first write. A repeated run changes only what differs and prunes
        objects that the values no longer ask for.

        \b
        Look first:  hortus install --export --set garden.projectName=demo
        Compare:     hortus --kubeconfig mgmt.yaml install --set garden.projectName=demo --diff
        Then:        hortus --kubeconfig mgmt.yaml install --set garden.projectName=demo
        The garden:  hortus --garden-kubeconfig garden.yaml install --garden-account demo
        """
        from hortus.cli.install.chart import objects, values_of
        from hortus.cli.install.garden import account

        format = OutputFormat.parse(output)
        if format.name not in ("yaml", "json"):
            raise click.BadParameter("yaml or json", param_hint="--output")

        async def work() -> None:
            if garden_account:
                found = account(garden_account)
            else:
                found = objects(namespace, values_of(values, settings))
            if export:
                _print(found, format)
                return
            connections = connect()
            client = connections.garden() if garden_account else connections.management()
            from hortus.cli.install.applying import Installation

            async with client:
                place = "" if garden_account else namespace
                installation = Installation(client, found, click.echo, namespace=place)
                if diff:
                    _show(await installation.plan())
                    return
                await installation.apply()
                if wait and not garden_account:
                    await installation.ready(timeout)

        run(work())


def _add_check(app: CommandGroup, connect: Connect) -> None:
    @app.command(panel=_PANEL)
    @_NAMESPACE
    @_VALUES
    @_SET
    @click.option("--output", "-o", default="table", help="table, json or yaml.")
    def check(namespace: str, values: tuple[Path, ...], settings: tuple[str, ...], output: str) -> None:
        """Check an installation, or what one would need, and print the fix of each problem.

        Looks at the API server, the CRDs, the configuration, the watched namespace, the garden's Secret and what its
        account may do, the controllers' own permissions and the Deployment, and says which kinds are served. Writes
        nothing. Exit code 1 when a check failed; warnings do not count.

        \b
        Before:  hortus --kubeconfig mgmt.yaml check -f values.yaml
        After:   hortus --kubeconfig mgmt.yaml check
        """
        from hortus.cli.install.chart import objects, values_of

        format = OutputFormat.parse(output)
        if format.name not in ("table", "json", "yaml"):
            raise click.BadParameter("table, json or yaml", param_hint="--output")

        async def work() -> bool:
            from hortus.cli.install.checks import check as findings

            found = objects(namespace, values_of(values, settings))
            results = []
            async with connect().management() as client:
                async for finding in findings(client, found, namespace):
                    results.append(finding)
                    if format.tabular:
                        click.echo(f"{finding.state:<9}{finding.subject:<19}{finding.text}")
            if not format.tabular:
                plain([finding._asdict() for finding in results], format)
            return all(finding.state != "failed" for finding in results)

        if not run(work()):
            raise click.exceptions.Exit(1)


def _add_uninstall(app: CommandGroup, connect: Connect) -> None:
    @app.command(panel=_PANEL)
    @_NAMESPACE
    @_VALUES
    @_SET
    @click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
    def uninstall(namespace: str, values: tuple[Path, ...], settings: tuple[str, ...], yes: bool) -> None:
        """Uninstall Hortus from the management cluster; the CRDs and all objects of their kinds are kept.

        Give the values of the installation. With --set crds.keep=false the CRDs are deleted too, and all objects of
        their kinds with them.
        """
        from hortus.cli.install.applying import Installation
        from hortus.cli.install.chart import objects, values_of

        async def work() -> None:
            found = objects(namespace, values_of(values, settings))
            async with connect().management() as client:
                if not yes:
                    click.confirm(f"Remove Hortus from namespace {namespace} of {client.host}?", abort=True)
                await Installation(client, found, click.echo, namespace=namespace).remove()

        run(work())


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
