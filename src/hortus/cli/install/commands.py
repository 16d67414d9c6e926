"""`hortus install`, `hortus check` and `hortus uninstall`: Hortus on a cluster, without Helm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hortus.cli.install.options import CHART_VALUES, INSTALL, NAMESPACE, UNINSTALL
from hortus.terminal import OUTPUT, CommandGroup, Connect, OutputFormat, plain, print_line, refuse, run

_PANEL = "In production"
_CONNECTIONS = ("kubeconfig", "context", "garden_kubeconfig", "garden_project", "state_dir")


def register(app: CommandGroup, connect: Connect) -> None:
    _add_install(app, connect)
    _add_check(app, connect)
    _add_uninstall(app, connect)


def _add_install(app: CommandGroup, connect: Connect) -> None:
    @app.command(panel=_PANEL)
    @INSTALL
    def install(export: bool, garden_account: str, write_kubeconfig: Path | None, **given: Any) -> None:
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
        from hortus.cli.install.installing import InstallOrder

        if export:
            refuse(_CONNECTIONS, "--export prints the objects and connects to no cluster")
        order = InstallOrder(export=export, garden_account=garden_account, write_kubeconfig=write_kubeconfig, **given)
        run(order.serve(connect))


def _add_check(app: CommandGroup, connect: Connect) -> None:
    @app.command(panel=_PANEL)
    @NAMESPACE
    @CHART_VALUES
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
                        print_line(str(finding))
            if not output.tabular:
                plain([finding._asdict() for finding in results], output)
            return all(finding.state != "failed" for finding in results)

        if not run(work()):
            raise click.exceptions.Exit(1)


def _add_uninstall(app: CommandGroup, connect: Connect) -> None:
    @app.command(panel=_PANEL)
    @UNINSTALL
    def uninstall(garden_account: str, yes: bool, **given: Any) -> None:
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
        from hortus.cli.install.uninstalling import uninstall_account, uninstall_hortus

        if garden_account:
            run(uninstall_account(connect, garden_account, yes=yes))
        else:
            run(uninstall_hortus(connect, yes=yes, **given))
