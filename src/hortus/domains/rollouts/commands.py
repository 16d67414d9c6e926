"""`hortus rollout`: start, follow and direct changes of many clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from hortus.terminal import CommandGroup, Connections, OutputFormat, completing, output_formats, run
from hortus.terminal.confirmation import YES

Connect = Callable[[], Connections]
DEFAULT_NAMESPACE = "fleet"

_ABOUT = """Change many clusters, stage by stage.

A RolloutPolicy governs changes: in which order clusters change, how many at a
time, and how many failures stop it. docs/rollouts.md explains all of it.
"""
_namespace = click.option("--namespace", "-n", default=DEFAULT_NAMESPACE, help="Namespace of rollouts and policies.")


async def _names(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.engine.rollouts.types import ROLLOUTS
    from hortus.kube.objects import key_of

    async with connections.management() as client:
        listed = await client.list(ROLLOUTS, given.get("namespace") or DEFAULT_NAMESPACE, metadata_only=True)
        return [key_of(one).name for one in listed.items]


async def _kinds(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.engine.rollouts.types import CHANGE_KINDS
    from hortus.kube.objects import key_of

    async with connections.management() as client:
        return [key_of(one).name for one in (await client.list(CHANGE_KINDS, metadata_only=True)).items]


_name = click.argument("name", metavar="NAME", help="Name of the Rollout.", shell_complete=completing(_names))


def register(app: CommandGroup, connect: Connect) -> None:
    """Add this domain's commands to `app`; `connect` connects to the clusters that the user chose."""

    rollout = CommandGroup("rollout", panel="Fleet", help=_ABOUT, no_args_is_help=True)
    app.add_command(rollout)
    _register_reading(rollout, connect)
    _register_orders(rollout, connect)
    _register_start(rollout, connect)


def _register_reading(rollout: CommandGroup, connect: Connect) -> None:
    @rollout.command("list")
    @_namespace
    @output_formats("table", "wide", "json", "yaml")
    def list_(namespace: str, output: OutputFormat) -> None:
        """List the rollouts that are under way.

        `hortus rollout history` lists those that ended, too.
        """
        from hortus.domains.rollouts import reading

        run(reading.list_rollouts(connect(), namespace, output, ended=False))

    @rollout.command()
    @click.argument("subject", default="", metavar="[SUBJECT]", help="Only rollouts of this subject.")
    @_namespace
    @output_formats("table", "wide", "json", "yaml")
    def history(subject: str, namespace: str, output: OutputFormat) -> None:
        """List all rollouts, the newest first."""
        from hortus.domains.rollouts import reading

        run(reading.list_rollouts(connect(), namespace, output, ended=True, subject=subject))

    @rollout.command()
    @_name
    @_namespace
    @output_formats("table", "json", "yaml")
    def show(name: str, namespace: str, output: OutputFormat) -> None:
        """Show one rollout: its stages as bars, and the clusters that failed.

        In a bar # stands for clusters that are done, + for those in work, ! for failed ones and - for those that are
        left out because they are hibernated or unreachable.
        """
        from hortus.domains.rollouts import reading

        run(reading.show_rollout(connect(), name, namespace, output))

    @rollout.command()
    @_name
    @_namespace
    def watch(name: str, namespace: str) -> None:
        """Follow one rollout until it ends.

        A terminal shows its page, drawn again with each change; a pipe gets a line for each. The exit code is 0 when it
        succeeded, 1 when it halted or was ended.
        """
        from hortus.domains.rollouts import reading

        run(reading.watch_rollout(connect(), name, namespace))


def _register_orders(rollout: CommandGroup, connect: Connect) -> None:
    @rollout.command()
    @_name
    @click.option("--stage", default="", metavar="STAGE", help="The stage; the one that waits when left out.")
    @click.option(
        "--plan",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A plan of hortus plan --save: nothing is approved if the fleet has left it.",
    )
    @_namespace
    def approve(name: str, stage: str, plan: Path | None, namespace: str) -> None:
        """Approve a stage, so that it begins or ends.

        Needs the verb `approve` on the Rollout. With a plan, the objects that it changes must be in a state of the
        planned way: as they were, as the change makes them, or as they are in the end.
        """
        from hortus.domains.rollouts import orders

        run(orders.approve(connect(), name, namespace, stage, plan))

    @rollout.command()
    @_name
    @_namespace
    def pause(name: str, namespace: str) -> None:
        """Admit no further cluster. Clusters that have begun finish."""
        from hortus.domains.rollouts import orders

        run(orders.pause(connect(), name, namespace))

    @rollout.command()
    @_name
    @_namespace
    def resume(name: str, namespace: str) -> None:
        """Go on after a pause, or after a halt.

        After a halt, the failures so far no longer count; that needs the verb `approve` on the Rollout.
        """
        from hortus.domains.rollouts import orders

        run(orders.resume(connect(), name, namespace))

    @rollout.command()
    @_name
    @_namespace
    @YES
    def abort(name: str, namespace: str, yes: bool) -> None:
        """End a rollout for good. Clusters that have begun finish, no other begins."""
        from hortus.domains.rollouts import orders
        from hortus.terminal.confirmation import confirm

        confirm(f"Abort rollout {name}? It cannot be resumed.", yes=yes)
        run(orders.abort(connect(), name, namespace))


def _register_start(rollout: CommandGroup, connect: Connect) -> None:
    @rollout.command()
    @click.argument(
        "kind",
        metavar="KIND",
        help="Name of a ChangeKind, or of its only subject.",
        shell_complete=completing(_kinds),
    )
    @click.option("--to", required=True, metavar="VERSION", help="The new version.")
    @click.option("--from", "origin", default="", metavar="VERSION", help="Only clusters of this version change.")
    @click.option("--subject", default="", help="The subject that changes; the only one of the kind when left out.")
    @click.option("--selector", "-l", "labels", default="", metavar="LABELS", help="Only ClusterProfiles with these.")
    @click.option("--policy", default="", metavar="NAME", help="RolloutPolicy; the one that governs the change.")
    @click.option("--dry-run", is_flag=True, help="Print the Rollout and create nothing.")
    @_namespace
    def start(
        kind: str, to: str, origin: str, subject: str, labels: str, policy: str, dry_run: bool, namespace: str
    ) -> None:
        """Start a rollout that sets the objects of the clusters to a version.

        The ChangeKind says how. Without a policy a tenth of the clusters changes at a time, and the rollout halts
        when more than a twentieth failed.

        \b
        kubectl get changekinds
        hortus rollout start kubernetes --from 1.33.4 --to 1.34.1 -l ring=one
        hortus rollout watch NAME
        """
        from hortus.domains.rollouts import orders

        wanted = orders.StartRequest(kind, subject, origin, to, labels, policy)
        run(orders.start(connect(), wanted, namespace, dry_run=dry_run))
