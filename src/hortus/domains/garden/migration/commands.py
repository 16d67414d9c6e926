"""`hortus migrate`: moves the control plane of a Shoot to another seed, shows its way, and turns it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click

from hortus.terminal import (
    EXIT_ERROR,
    EXIT_USAGE,
    CommandError,
    CommandGroup,
    Connections,
    clean,
    output_formats,
    plain,
    run,
    timeout,
)
from hortus.terminal.output import OutputFormat

if TYPE_CHECKING:
    from hortus.domains.garden.migration.asking import MigrationRequests

_OUTPUT: Final = output_formats("text", "json", "yaml")


def register(app: CommandGroup, connect: Callable[[], Connections]) -> None:
    """Add `hortus migrate`."""

    @app.command(panel="Fleet")
    @click.argument("shoot", metavar="SHOOT")
    @click.option("--to", "seed", default="", metavar="SEED", help="Seed to move to.")
    @click.option("--plan", is_flag=True, help="Check what speaks against it, and change nothing.")
    @click.option("--abort", is_flag=True, help="Turn a migration back, until a member of the source was removed.")
    @click.option("--force-shrink", is_flag=True, help="Remove the source although the destination is not whole.")
    @click.option("--without-ha", is_flag=True, help="Allow a control plane of one member.")
    @click.option("--allow-distant", is_flag=True, help="Allow a seed that is further away than the limit.")
    @click.option("--wait/--no-wait", default=True, help="Show the progress until the end.")
    @click.option(
        "--namespace", "-n", default="", help="Namespace of the project in the garden; else that of its kubeconfig."
    )
    @timeout("30m")
    @_OUTPUT
    def migrate(
        shoot: str,
        seed: str,
        plan: bool,
        abort: bool,
        force_shrink: bool,
        without_ha: bool,
        allow_distant: bool,
        wait: bool,
        namespace: str,
        timeout: float,
        output: OutputFormat,
    ) -> None:
        """Move the control plane of a Shoot to another seed without downtime.

        Each line of the progress has the seconds since the start, the phase, and etcd's members: a learner in
        brackets, the leader with an asterisk. Ctrl-C ends the progress and not the migration; the same command shows it
        again. Exit code 1 if the migration was refused, aborted or has failed.

        \b
        hortus migrate demo-1 --to aws-2 --plan
        hortus migrate demo-1 --to aws-2
        hortus migrate demo-1 --abort
        """
        if bool(seed) == (abort or force_shrink):
            raise CommandError("give --to SEED, or one of --abort and --force-shrink", code=EXIT_USAGE)
        if plan and not seed:
            raise CommandError("--plan needs --to SEED", code=EXIT_USAGE)
        wishes = _wishes(abort=abort, force_shrink=force_shrink, without_ha=without_ha, allow_distant=allow_distant)
        run(_migrate(connect(), shoot, seed, wishes, namespace, output, plan=plan, patience=timeout if wait else 0.0))


def _wishes(*, abort: bool, force_shrink: bool, without_ha: bool, allow_distant: bool) -> dict[str, str]:
    """The annotations that options stand for."""
    from hortus.gardener.livemigration import ABORT, ALLOW_DISTANT, FORCE_SHRINK, WITHOUT_HA

    asked = {ABORT: abort, FORCE_SHRINK: force_shrink, WITHOUT_HA: without_ha, ALLOW_DISTANT: allow_distant}
    return {name: "true" for name, wanted in asked.items() if wanted}


async def _migrate(
    connections: Connections,
    shoot: str,
    seed: str,
    wishes: dict[str, str],
    namespace: str,
    output: OutputFormat,
    *,
    plan: bool,
    patience: float,
) -> None:
    from hortus.domains.garden.migration.asking import MigrationRequests

    async with connections.garden() as garden:
        requests = MigrationRequests(garden, shoot, namespace or garden.access.namespace)
        if plan:
            await _print_plan(requests, seed, wishes, output)
            return
        await (requests.ask(seed, wishes) if seed else requests.turn(wishes))
        if patience:
            await _follow(requests, output, patience)


async def _print_plan(requests: MigrationRequests, seed: str, wishes: dict[str, str], output: OutputFormat) -> None:
    plan = await requests.plan(seed, wishes)
    if output.name == "text":
        for line in plan.lines():
            click.echo(clean(line))
    else:
        plain(plan.document(), output)
    if plan.problems:
        raise click.exceptions.Exit(EXIT_ERROR)


async def _follow(requests: MigrationRequests, output: OutputFormat, patience: float) -> None:
    import asyncio

    from hortus.domains.garden.migration.showing import MigrationProgress
    from hortus.kube.clock import SystemClock

    progress = MigrationProgress(SystemClock())
    try:
        async with asyncio.timeout(patience):
            async for shoot in requests.states():
                line = progress.note(shoot)
                if line and output.name == "text":
                    click.echo(clean(line))
                if progress.ended:
                    break
    except TimeoutError:
        raise CommandError(f"the migration has not ended within {patience:g} s; it goes on") from None
    if output.name == "text":
        click.echo()
        for line in progress.picture():
            click.echo(clean(line))
        click.echo(f"\n{clean(progress.outcome)}.")
    else:
        plain(progress.document(), output)
    if not progress.succeeded:
        raise click.exceptions.Exit(EXIT_ERROR)
