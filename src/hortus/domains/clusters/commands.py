"""The commands `hortus why`, `suspend`, `resume`, `reconcile` and `retire` for one Runtime."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from hortus.domains.clusters import adopting
from hortus.terminal import (
    EXIT_ERROR,
    EXIT_TIMEOUT,
    OUTPUT,
    CommandError,
    CommandGroup,
    Connections,
    OutputFormat,
    clean,
    completing,
    open_garden,
    plain,
    run,
    timeout,
)

Connect = Callable[[], Connections]
DEFAULT_NAMESPACE = "kcp-system"


async def _names(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.domains.clusters.types import RUNTIMES
    from hortus.kube.objects import key_of

    async with connections.management() as client:
        listed = await client.list(RUNTIMES, given.get("namespace") or DEFAULT_NAMESPACE, metadata_only=True)
        return [key_of(runtime).name for runtime in listed.items]


NAME = click.argument(
    "name", metavar="NAME", help="Name of the Runtime, or its runtime-id.", shell_complete=completing(_names)
)
NAMESPACE = click.option("--namespace", "-n", default=DEFAULT_NAMESPACE, help="Namespace of the Runtime.")
WAIT = click.option("--wait/--no-wait", default=True, help="Wait until it is done.")


def register(app: CommandGroup, connect: Connect) -> None:
    """Add this domain's commands to `app`; `connect` returns the clusters that the person means."""

    @app.command(panel="Clusters")
    @NAME
    @NAMESPACE
    @OUTPUT
    def why(name: str, namespace: str, output: OutputFormat) -> None:
        """Explain the state of a Runtime and name the owner of the next step.

        Exit code 1 if a person has to act.
        """
        run(_why(connect(), name, namespace, output))

    @app.command(panel="Clusters")
    @NAME
    @NAMESPACE
    def suspend(name: str, namespace: str) -> None:
        """Suspend patches of a Runtime's Shoot until `hortus resume`."""
        run(_suspend(connect(), name, namespace))

    @app.command(panel="Clusters")
    @NAME
    @NAMESPACE
    def resume(name: str, namespace: str) -> None:
        """Resume patches of a Runtime's Shoot, including changes made in the meantime."""
        run(_resume(connect(), name, namespace))

    @app.command(panel="Clusters")
    @NAME
    @NAMESPACE
    @WAIT
    @timeout("10m")
    def reconcile(name: str, namespace: str, wait: bool, timeout: float) -> None:
        """Patch the Shoot of a Runtime now, even after a permanent failure.

        Waits until the Runtime is Ready or has failed.
        """
        run(_reconcile(connect(), name, namespace, timeout if wait else None))

    @app.command(panel="Clusters")
    @NAME
    @NAMESPACE
    @click.option(
        "--force",
        is_flag=True,
        help="When the infrastructure blocks it: go on, and leave behind what cannot be removed.",
    )
    @WAIT
    @timeout("30m")
    def retire(name: str, namespace: str, force: bool, wait: bool, timeout: float) -> None:
        """Delete a Runtime, its cluster and all objects that were created for it."""
        run(_retire(connect(), name, namespace, force=force, timeout=timeout if wait else None))

    adopting.register(app, connect)


async def _why(connections: Connections, name: str, namespace: str, format: OutputFormat) -> None:
    from hortus.domains.clusters.lookup import explain

    async with connections.management() as client, open_garden(connections, client, namespace) as garden:
        found = await explain(client, garden, name, namespace)
    if not format.tabular:
        import msgspec

        plain(msgspec.to_builtins(found), format)
    else:
        for title, text in found.lines():
            click.echo(f"{title + ':':<12} {clean(text)}")
    if found.turn != "nobody":
        raise SystemExit(EXIT_ERROR)


async def _suspend(connections: Connections, name: str, namespace: str) -> None:
    from hortus.domains.clusters.lookup import annotate, read_runtime
    from hortus.domains.clusters.types import Annotation

    async with connections.management() as client:
        runtime = await read_runtime(client, name, namespace)
        await annotate(client, runtime, Annotation.SUSPEND_PATCH, "true")
    click.echo(f"runtime/{runtime.metadata.name} suspended: its shoot stays as it is")


async def _resume(connections: Connections, name: str, namespace: str) -> None:
    from hortus.domains.clusters.lookup import annotate, read_runtime
    from hortus.domains.clusters.types import Annotation

    async with connections.management() as client:
        runtime = await read_runtime(client, name, namespace)
        await annotate(client, runtime, Annotation.SUSPEND_PATCH, None)
    click.echo(f"runtime/{runtime.metadata.name} resumed")


async def _reconcile(connections: Connections, name: str, namespace: str, timeout: float | None) -> None:
    from hortus.domains.clusters import service
    from hortus.domains.clusters.lookup import annotate, reached, read_runtime
    from hortus.domains.clusters.types import Annotation

    began = time.monotonic()
    async with connections.management() as client:
        runtime = await read_runtime(client, name, namespace)
        name = runtime.metadata.name
        if service.suspended(runtime):
            raise CommandError(f"runtime/{name} is suspended: `hortus resume {name}` first")
        asked = await annotate(client, runtime, Annotation.FORCE_PATCH, "true")
        if timeout is None:
            click.echo(f"runtime/{name} is asked to be reconciled")
            return
        problem = await reached(client, asked, timeout)
    if problem is not None:
        raise CommandError(f"runtime/{name}: {problem}", code=EXIT_TIMEOUT)
    click.echo(f"runtime/{name} reconciled in {time.monotonic() - began:.1f} s")


async def _retire(connections: Connections, name: str, namespace: str, *, force: bool, timeout: float | None) -> None:
    from hortus.domains.clusters.lookup import annotate, gone, read_runtime
    from hortus.domains.clusters.types import RUNTIMES, Annotation

    began = time.monotonic()
    async with connections.management() as client:
        runtime = await read_runtime(client, name, namespace)
        metadata = runtime.metadata
        if force:
            runtime = await annotate(client, runtime, Annotation.FORCE_DELETION, "true")
        await client.delete(RUNTIMES, metadata.name, metadata.namespace, uid=metadata.uid)
        if timeout is None:
            click.echo(f"runtime/{metadata.name} is being retired")
            return
        problem = await gone(client, runtime, timeout)
    if problem is not None:
        raise CommandError(f"runtime/{metadata.name}: {problem}", code=EXIT_TIMEOUT)
    click.echo(f"runtime/{metadata.name} retired in {time.monotonic() - began:.1f} s")
