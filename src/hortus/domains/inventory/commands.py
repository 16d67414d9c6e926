"""`hortus clusters`: the clusters of the fleet, one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from hortus.terminal import (
    CommandError,
    CommandGroup,
    Connections,
    OutputFormat,
    Table,
    completing,
    output_formats,
    plain,
    print_table,
    run,
)

if TYPE_CHECKING:
    from hortus.domains.inventory.views import ClusterWave
    from hortus.kube import Client

Connect = Callable[[], Connections]
DEFAULT_NAMESPACE = "fleet"


async def _names(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.domains.inventory.types import CLUSTER_PROFILES
    from hortus.kube.objects import key_of

    async with connections.management() as client:
        listed = await client.list(CLUSTER_PROFILES, given.get("namespace") or DEFAULT_NAMESPACE, metadata_only=True)
        return [key_of(one).name for one in listed.items]


def register(app: CommandGroup, connect: Connect) -> None:
    """Add this domain's command to `app`; `connect` connects to the clusters that the user chose."""

    @app.command(panel="Fleet")
    @click.argument(
        "names", nargs=-1, metavar="[NAME]...", help="Names of ClusterProfiles.", shell_complete=completing(_names)
    )
    @click.option("--selector", "-l", "labels", default="", metavar="LABELS", help="Those with these labels.")
    @click.option("--namespace", "-n", default=DEFAULT_NAMESPACE, help="Namespace of the fleet.")
    @output_formats("table", "wide", "json", "yaml", "name")
    def clusters(names: tuple[str, ...], labels: str, namespace: str, output: OutputFormat) -> None:
        """List the clusters of the fleet, of every source and manager.

        \b
        hortus clusters -o wide
        hortus clusters -l topology.kubernetes.io/region=eu-central-1
        hortus clusters demo-1 -o json

        -o wide and -o json explain a state other than Ready.
        """
        run(_clusters(connect(), names, labels, namespace, output))


async def _clusters(
    connections: Connections, names: tuple[str, ...], labels: str, namespace: str, output: OutputFormat
) -> None:
    import msgspec

    from hortus.domains.inventory import views
    from hortus.domains.inventory.types import CLUSTER_PROFILES, ClusterProfile
    from hortus.engine import read
    from hortus.kube.errors import NotServed

    async with connections.management() as client:
        try:
            listed = (await client.list(CLUSTER_PROFILES, namespace, labels=labels)).items
        except NotServed:
            raise CommandError(f"{client.host} serves no ClusterProfiles: install Hortus there, or their CRD") from None
        profiles = sorted((read(ClusterProfile, one) for one in listed), key=lambda one: one.metadata.name)
        waves = {} if output.name in ("table", "name") else await _waves(client, namespace)
    known = {one.metadata.name for one in profiles}
    if missing := [name for name in names if name not in known]:
        there = ", ".join(sorted(known)[:20]) or "none"
        raise CommandError(f"no cluster {missing[0]} in namespace {namespace}; there are: {there}")
    rows = [
        views.row(one, waves.get(one.metadata.name, ())) for one in profiles if not names or one.metadata.name in names
    ]
    if output.name == "name":
        for row in rows:
            click.echo(f"clusterprofile.multicluster.x-k8s.io/{row.name}")
    elif not output.tabular:
        plain(msgspec.to_builtins(rows), output)
    elif rows:
        wide = output.name == "wide"
        print_table(Table(views.WIDE if wide else views.HEADS, [row.cells(wide=wide) for row in rows]))
    else:
        such = f" with labels {labels}" if labels else ""
        hint = "" if labels else "; controllers with --inventory make them of Runtimes, GardenerClusters and Secrets"
        click.echo(f"No clusters{such} in namespace {namespace}{hint}.", err=True)


async def _waves(client: Client, namespace: str) -> dict[str, list[ClusterWave]]:
    """The rollouts under way, where there are any that may be read."""
    from hortus.domains.inventory.views import waves_of
    from hortus.engine import read
    from hortus.engine.rollouts.types import PLACEMENT_DECISIONS, ROLLOUTS, PlacementDecision, Rollout
    from hortus.kube.errors import Forbidden, NotServed

    try:
        rollouts = [read(Rollout, one) for one in (await client.list(ROLLOUTS, namespace)).items]
        slices = [read(PlacementDecision, one) for one in (await client.list(PLACEMENT_DECISIONS, namespace)).items]
    except (NotServed, Forbidden):
        return {}
    return waves_of(rollouts, slices)
