"""`hortus migrate-credentials`: moves the Shoots of a project from SecretBindings to CredentialsBindings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hortus.terminal import (
    OUTPUT,
    YES,
    CommandError,
    CommandGroup,
    Connect,
    Connections,
    Number,
    OutputFormat,
    TargetSelection,
    clean,
    confirm,
    counted,
    plain,
    print_table,
    run,
)

if TYPE_CHECKING:
    from hortus.domains.clusters.migration import MigrationReport
    from hortus.kube import Client

EXIT_UNFINISHED: Final = 1
EXIT_FAILED: Final = 2


def register(app: CommandGroup, connect: Connect) -> None:
    """Add the command to `app`."""

    @app.command("migrate-credentials", panel="Clusters")
    @click.argument("names", nargs=-1, metavar="[SHOOT]...", help="Shoots of the garden.")
    @click.option("--all", "everything", is_flag=True, help="All Shoots and SecretBindings of the project.")
    @click.option("--selector", "-l", default="", metavar="LABELS", help="Shoots with these labels.")
    @click.option("--apply/--dry-run", default=False, help="Make the objects and change the Shoots, or only show it.")
    @click.option(
        "--namespace", "-n", default="", help="Namespace of the project in the garden; else that of its kubeconfig."
    )
    @click.option(
        "--concurrency", type=Number(1, 64), metavar="NUMBER", default=4, help="Number of Shoots changed in parallel."
    )
    @click.option(
        "--report", type=click.Path(path_type=Path), metavar="FILE", help="Write a report as JSON to this file."
    )
    @OUTPUT
    @YES
    def migrate_credentials(**given: Any) -> None:
        """Move Shoots from SecretBindings to CredentialsBindings, as Kubernetes 1.34 demands.

        Makes a CredentialsBinding for each SecretBinding, with its name, Secret, provider and quotas, unless one leads
        to the same Secret already. Then names it in each Shoot, which the garden reconciles once. Whatever was done is
        left alone, so run it again after a failure. Runtimes follow their Shoots without a change.

        Exit code 0 if all is done, 1 if something is left or refused, 2 after a failure.

        \b
        hortus migrate-credentials --all
        hortus migrate-credentials green --apply
        hortus migrate-credentials --all --apply -y --report migration.json
        """
        run(_migrate(connect(), **given))


async def _migrate(
    connections: Connections,
    *,
    names: tuple[str, ...],
    selector: str,
    everything: bool,
    apply: bool,
    namespace: str,
    concurrency: int,
    report: Path | None,
    output: OutputFormat,
    yes: bool,
) -> None:
    from hortus.kube.errors import KubeError

    selection = TargetSelection(names, selector, everything)
    try:
        selection.check()
        async with connections.garden() as garden:
            place = namespace or _project_of(connections) or garden.access.namespace
            found = await _carry_out(garden, place, selection, apply=apply, at_once=concurrency, yes=yes)
    except KubeError as error:
        raise CommandError(str(error), code=EXIT_FAILED) from error
    _tell(found, output, report)


def _project_of(connections: Connections) -> str:
    return f"garden-{connections.garden_project}" if connections.garden_project else ""


async def _carry_out(
    garden: Client, namespace: str, selection: TargetSelection, *, apply: bool, at_once: int, yes: bool
) -> MigrationReport:
    """Plan the move of the selected Shoots and, with `apply`, make it. Raises KubeError, CommandError."""
    from hortus.domains.clusters.migration import make_move, plan_move, report_of
    from hortus.kube.clock import SystemClock
    from hortus.kube.objects import format_time

    move = await plan_move(garden, namespace, selection)
    entries = move.entries
    if apply:
        changes = [plan.entry.name for plan in move.shoots.values() if plan.request is not None]
        if changes and not selection.names:
            confirm(f"Change the binding of {counted('Shoot', changes)} in namespace {namespace}?", yes=yes)
        entries = await make_move(garden, namespace, move, at_once=at_once)
    return report_of(namespace, format_time(SystemClock().now()), entries, dry_run=not apply)


def _tell(found: MigrationReport, output: OutputFormat, path: Path | None) -> None:
    import msgspec
    import orjson

    document = msgspec.to_builtins(found)
    if path is not None:
        try:
            path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
        except OSError as error:
            raise CommandError(f"--report {path}: {error.strerror}", code=EXIT_FAILED) from None
    if output.tabular:
        print_table(found.table())
        if found.dry_run and found.unfinished:
            click.echo(clean("dry run: nothing was written; --apply makes the objects and changes the Shoots"))
    else:
        plain(document, output)
    if found.failed:
        raise SystemExit(EXIT_FAILED)
    if found.unfinished:
        raise SystemExit(EXIT_UNFINISHED)
