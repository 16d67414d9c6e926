"""The commands `hortus why`, `suspend`, `resume`, `reconcile` and `retire` for Runtimes, and those of the domain."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hortus.domains.clusters import adopting, migrating
from hortus.terminal import (
    DEFAULT_NAMESPACE,
    EXIT_ERROR,
    EXIT_TIMEOUT,
    OUTPUT,
    CommandError,
    CommandGroup,
    Connect,
    Connections,
    OutputFormat,
    TargetSelection,
    clean,
    completing,
    confirm,
    counted,
    for_each,
    names_of,
    open_garden,
    plain,
    run,
    select,
    selecting,
    timeout,
)

if TYPE_CHECKING:
    from hortus.domains.clusters.types import Runtime
    from hortus.kube import Client


async def _names(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.domains.clusters.types import RUNTIMES

    return await names_of(RUNTIMES, connections, given.get("namespace") or DEFAULT_NAMESPACE)


NAME = click.argument(
    "name", metavar="NAME", help="Name of the Runtime, its runtime-id or its Shoot.", shell_complete=completing(_names)
)
NAMESPACE = click.option("--namespace", "-n", default=DEFAULT_NAMESPACE, help="Namespace of the Runtime.")
RUNTIMES_CHOSEN = selecting(
    "Names of Runtimes, or their runtime-ids.", completing(_names), DEFAULT_NAMESPACE, several="Runtimes"
)
DELETE = "Delete {}, and the cluster behind with everything in it?"
FORCE = "Leave behind at the provider what cannot be removed there, for {}?"
WAIT = click.option("--wait/--no-wait", default=True, help="Wait until it is done.")


def register(app: CommandGroup, connect: Connect) -> None:
    """Add this domain's commands to `app`; `connect` returns the clusters that the person means."""
    _add_why(app, connect)
    _add_patching(app, connect)
    _add_retire(app, connect)
    adopting.register(app, connect)
    migrating.register(app, connect)


def _add_why(app: CommandGroup, connect: Connect) -> None:
    @app.command(panel="Clusters")
    @NAME
    @NAMESPACE
    @OUTPUT
    def why(name: str, namespace: str, output: OutputFormat) -> None:
        """Explain the state of a Runtime and name the owner of the next step.

        Exit code 1 if a person has to act.
        """
        run(_why(connect(), name, namespace, output))


def _add_patching(app: CommandGroup, connect: Connect) -> None:
    @app.command(panel="Clusters")
    @RUNTIMES_CHOSEN
    def suspend(**given: Any) -> None:
        """Suspend patches of Runtimes' Shoots until `hortus resume`."""
        run(_act(connect(), _suspend, "Suspend {}?", **given))

    @app.command(panel="Clusters")
    @RUNTIMES_CHOSEN
    def resume(**given: Any) -> None:
        """Resume patches of Runtimes' Shoots, including changes made in the meantime."""
        run(_act(connect(), _resume, "Resume {}?", **given))

    @app.command(panel="Clusters")
    @RUNTIMES_CHOSEN
    @WAIT
    @timeout("10m")
    def reconcile(wait: bool, timeout: float, **given: Any) -> None:
        """Patch the Shoots of Runtimes now, even after a permanent failure.

        Waits until each Runtime is Ready or has failed.
        """
        step = partial(_reconcile, timeout=timeout if wait else None)
        run(_act(connect(), step, "Patch the Shoots of {} now?", **given))


def _add_retire(app: CommandGroup, connect: Connect) -> None:
    @app.command(panel="Clusters")
    @RUNTIMES_CHOSEN
    @click.option(
        "--force",
        is_flag=True,
        help="When the infrastructure blocks it: go on, and leave behind what cannot be removed.",
    )
    @WAIT
    @timeout("30m")
    def retire(force: bool, wait: bool, timeout: float, **given: Any) -> None:
        """Delete Runtimes, their clusters and all objects that were created for them.

        Asks first, and with --force a second time.

        \b
        hortus retire blue green
        hortus retire -l stage=test --no-wait -y
        """
        questions = (DELETE, FORCE) if force else (DELETE,)
        step = partial(_retire, force=force, timeout=timeout if wait else None)
        run(_act(connect(), step, *questions, always=True, **given))


async def _why(connections: Connections, name: str, namespace: str, format: OutputFormat) -> None:
    from hortus.domains.clusters.lookup import explain
    from hortus.domains.clusters.types import RUNTIMES

    (name,) = TargetSelection((name,)).of_kind(RUNTIMES).names
    async with connections.management() as client, open_garden(connections, client, namespace) as garden:
        found = await explain(client, garden, name, namespace)
        if reason := await connections.unserved_reason(client, RUNTIMES.kind, namespace):
            found = found.unserved_because(reason)
    if not format.tabular:
        import msgspec

        plain(msgspec.to_builtins(found), format)
    else:
        for title, text in found.lines():
            click.echo(f"{title + ':':<12} {clean(text)}")
    if found.turn != "nobody":
        raise SystemExit(EXIT_ERROR)


async def _act(
    connections: Connections,
    step: Callable[[Client, Runtime], Awaitable[str]],
    *questions: str,
    names: tuple[str, ...],
    labels: str,
    everything: bool,
    namespace: str,
    yes: bool,
    always: bool = False,
) -> None:
    """Do `step` to each chosen Runtime. The questions come first: `always`, or where no names were typed."""
    from hortus.domains.clusters.lookup import read_runtime
    from hortus.domains.clusters.reading import runtime_of
    from hortus.domains.clusters.types import RUNTIMES

    selection = TargetSelection(names, labels, everything).of_kind(RUNTIMES)
    selection.check()
    async with connections.management() as client:
        if selection.names:
            chosen = [await read_runtime(client, name, namespace) for name in selection.names]
        else:
            chosen = [runtime_of(found) for found in await select(client, RUNTIMES, selection, namespace)]
        what = counted("Runtime", [runtime.metadata.name for runtime in chosen])
        for question in questions if chosen and (always or not selection.names) else ():
            confirm(question.format(f"{what} in namespace {namespace} of {client.host}"), yes=yes)
        await for_each(chosen, partial(step, client))


async def _suspend(client: Client, runtime: Runtime) -> str:
    from hortus.domains.clusters.lookup import annotate
    from hortus.domains.clusters.types import Annotation

    await annotate(client, runtime, Annotation.SUSPEND_PATCH, "true")
    return f"runtime/{runtime.metadata.name} suspended: its shoot stays as it is"


async def _resume(client: Client, runtime: Runtime) -> str:
    from hortus.domains.clusters.lookup import annotate
    from hortus.domains.clusters.types import Annotation

    await annotate(client, runtime, Annotation.SUSPEND_PATCH, None)
    return f"runtime/{runtime.metadata.name} resumed"


async def _reconcile(client: Client, runtime: Runtime, *, timeout: float | None) -> str:
    from hortus.domains.clusters import service
    from hortus.domains.clusters.lookup import annotate, reached
    from hortus.domains.clusters.types import Annotation

    began, name = time.monotonic(), runtime.metadata.name
    if service.suspended(runtime):
        raise CommandError(f"runtime/{name} is suspended: `hortus resume {name}` first")
    if service.forced(runtime):
        # Left by a request whose reconcile was refused: to set it once more would change nothing, so start nothing.
        await annotate(client, runtime, Annotation.FORCE_PATCH, None)
    asked = await annotate(client, runtime, Annotation.FORCE_PATCH, "true")
    if timeout is None:
        return f"runtime/{name} is asked to be reconciled"
    problem = await reached(client, asked, timeout)
    if problem is not None:
        raise CommandError(f"runtime/{name}: {problem}", code=EXIT_TIMEOUT)
    return f"runtime/{name} reconciled in {time.monotonic() - began:.1f} s"


async def _retire(client: Client, runtime: Runtime, *, force: bool, timeout: float | None) -> str:
    from hortus.domains.clusters.lookup import all_names, annotate, gone, left_of
    from hortus.domains.clusters.types import RUNTIMES, Annotation

    began, metadata = time.monotonic(), runtime.metadata
    if force:
        runtime = await annotate(client, runtime, Annotation.FORCE_DELETION, "true")
    await client.delete(RUNTIMES, metadata.name, metadata.namespace, uid=metadata.uid)
    if timeout is None:
        return f"runtime/{metadata.name} is being retired"
    problem = await gone(client, runtime, timeout)
    if problem is not None:
        raise CommandError(f"runtime/{metadata.name}: {problem}", code=EXIT_TIMEOUT)
    left = "".join(f"; {one}" for one in await left_of(client, metadata.namespace, all_names(runtime)))
    return f"runtime/{metadata.name} retired in {time.monotonic() - began:.1f} s{left}"
