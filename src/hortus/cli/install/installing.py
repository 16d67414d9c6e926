"""The work of `hortus install`: the chart's objects are printed, compared or applied.

Parts that reach a cluster are loaded when one is reached: `--export` needs none.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from hortus.cli.install.chart import objects, values_of
from hortus.cli.install.garden import account
from hortus.terminal import CommandError, Connect, OutputFormat, plain, print_line

if TYPE_CHECKING:
    from hortus.cli.install.applying import Installation, PlannedChange
    from hortus.kube import Client
    from hortus.kube.objects import Object


class InstallOrder(NamedTuple):
    """The options of one `hortus install`."""

    namespace: str
    values: tuple[Path, ...]
    settings: tuple[str, ...]
    export: bool
    output: OutputFormat
    garden_account: str
    write_kubeconfig: Path | None
    duration: float
    adopt: bool
    diff: bool
    wait: bool
    timeout: float

    async def serve(self, connect: Connect) -> None:
        """Raises CommandError, KubeError, click.exceptions.Exit."""
        found = self._objects()
        if self.export:
            _print(found, self.output)
            return
        connections = connect()
        client = connections.garden() if self.garden_account else connections.management()
        from hortus.cli.install.applying import Installation

        async with client:
            namespace = "" if self.garden_account else self.namespace
            installation = Installation(client, found, print_line, namespace=namespace, adopt=self.adopt)
            if self.diff:
                _show(await installation.plan())
                return
            await installation.apply()
            if self.write_kubeconfig:
                await _write(client, self.garden_account, self.write_kubeconfig, int(self.duration))
            if not self.garden_account:
                await _start(installation, client, found, self.namespace, self.timeout if self.wait else 0.0)

    def _objects(self) -> list[Object]:
        if self.garden_account:
            return account(self.garden_account)
        return objects(self.namespace, values_of(self.values, self.settings))


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
        print_line(str(finding))
        blocked |= finding.state == "failed"
    if timeout and blocked:
        raise CommandError(
            "Hortus is installed, and its pods cannot start before what failed is mended; then run: "
            f"hortus check -n {namespace}"
        )
    if timeout:
        await installation.ready(timeout)
        click.echo(f"Hortus {__version__} is ready in {namespace}")


def _show(changes: list[PlannedChange]) -> None:
    """Prints the changes. Raises click.exceptions.Exit with code 1 if there are any."""
    for change in changes:
        if change.note:
            print_line(f"{change.title} {change.note}")
    changed = [change for change in changes if change.verb != "unchanged"]
    for change in changed:
        print_line(f"{change.title} would be {change.verb}")
        for field in change.fields:
            print_line(f"  {field}")
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
