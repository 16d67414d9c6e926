"""`hortus install` and `hortus uninstall`: Hortus on a cluster, without Helm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from hortus.kube.objects import Object
from hortus.terminal import Connections, Format, plain, run

Connect = Callable[[], Connections]
_PANEL = "In production"

Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace that Hortus runs in.")]
Values = Annotated[
    list[Path] | None, typer.Option("--values", "-f", metavar="FILE", help="Values of the chart; may be repeated.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=YAML", help="One value, as image.tag=v1; may be repeated.")
]


def register(app: typer.Typer, connect: Connect) -> None:
    @app.command(rich_help_panel=_PANEL)
    def install(
        namespace: Namespace = "hortus-system",
        values: Values = None,
        settings: Set = None,
        export: Annotated[bool, typer.Option("--export", help="Print the objects instead of applying them.")] = False,
        output: Annotated[str, typer.Option("--output", "-o", help="With --export: yaml or json.")] = "yaml",
        garden_account: Annotated[
            str,
            typer.Option(metavar="PROJECT", help="Instead: the account that Hortus needs in the garden's project."),
        ] = "",
        wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until Hortus works.")] = True,
        timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait.")] = 300.0,
    ) -> None:
        """Install or upgrade Hortus on the management cluster.

        The objects are those of the chart charts/hortus, with its values, and no Helm is needed. Done again it changes
        only what differs.

        \b
        Look first:  hortus install --export --set garden.projectName=demo
        Then:        hortus --kubeconfig mgmt.yaml install --set garden.projectName=demo
        The garden:  hortus --garden-kubeconfig garden.yaml install --garden-account demo
        """
        from hortus.cli.install.chart import objects, values_of
        from hortus.cli.install.garden import account

        format = Format.parse(output)
        if format.name not in ("yaml", "json"):
            raise typer.BadParameter("yaml or json", param_hint="--output")

        async def work() -> None:
            if garden_account:
                found = account(garden_account)
            else:
                found = objects(namespace, values_of(values or [], settings or []))
            if export:
                _print(found, format)
                return
            connections = connect()
            client = connections.garden() if garden_account else connections.management()
            from hortus.cli.install.applying import Installation

            async with client:
                installation = Installation(client, found, typer.echo)
                await installation.apply("" if garden_account else namespace)
                if wait and not garden_account:
                    await installation.ready(timeout)

        run(work())

    @app.command(rich_help_panel=_PANEL)
    def uninstall(
        namespace: Namespace = "hortus-system",
        values: Values = None,
        settings: Set = None,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    ) -> None:
        """Take Hortus off the management cluster; the CRDs and with them all clusters' objects stay.

        Give the values that it was installed with. With --set crds.keep=false the CRDs go too, and everything of their
        kinds with them.
        """
        from hortus.cli.install.applying import Installation
        from hortus.cli.install.chart import objects, values_of

        async def work() -> None:
            found = objects(namespace, values_of(values or [], settings or []))
            async with connect().management() as client:
                if not yes:
                    typer.confirm(f"Remove Hortus from namespace {namespace} of {client.host}?", abort=True)
                await Installation(client, found, typer.echo).remove()

        run(work())


def _print(objects: list[Object], format: Format) -> None:
    if format.name == "json":
        plain({"apiVersion": "v1", "kind": "List", "items": objects}, format)
        return
    for obj in objects:
        typer.echo("---")
        plain(obj, format)
