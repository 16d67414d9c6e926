"""`hortus kubeconfig`, `hortus rotate`, `hortus tree`: a cluster's credentials at the terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

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
    open_garden,
    plain,
    run,
    select,
    selecting,
    timeout,
)
from hortus.terminal.kubeconfigs import HANDED_OUT, Delivery, deliver

if TYPE_CHECKING:
    from hortus.domains.credentials.types import GardenerCluster
    from hortus.kube import Client

_NAMES = "Names of GardenerClusters, Runtimes or Shoots, or TYPE/NAME."


async def _names(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.domains.credentials.naming import known_names

    async with connections.management() as client:
        return await known_names(client, given.get("namespace") or DEFAULT_NAMESPACE)


NAME = click.argument(
    "name",
    metavar="NAME",
    help="Name of a GardenerCluster, Runtime or Shoot, or TYPE/NAME.",
    shell_complete=completing(_names),
)
NAMESPACE = click.option("--namespace", "-n", default=DEFAULT_NAMESPACE, help="Namespace of the GardenerCluster.")


def register(app: CommandGroup, connect: Connect) -> None:
    """Add this domain's commands to `app`; `connect` returns the clusters that the person means."""

    @app.command(panel="Clusters")
    @NAME
    @NAMESPACE
    @HANDED_OUT
    def kubeconfig(name: str, namespace: str, **given: Any) -> None:
        """Print the kubeconfig of a cluster, or merge it into your own.

        \b
        Printed:  hortus kubeconfig demo-1 > demo-1.yaml
        For days: hortus kubeconfig demo-1 --exec --merge
                  kubectl --context demo-1 get nodes

        A printed kubeconfig ends after a day at most. One with --exec goes on working, for as long as you may read the
        cluster's Secret.
        """
        delivery = Delivery(**given)
        delivery.check()
        run(_kubeconfig(connect(), name, namespace, delivery))

    @app.command(panel="Clusters")
    @selecting(_NAMES, completing(_names), DEFAULT_NAMESPACE, several="GardenerClusters")
    @click.option("--wait/--no-wait", default=True, help="Wait until each new kubeconfig is there.")
    @timeout("1m")
    def rotate(wait: bool, timeout: float, **given: Any) -> None:
        """Replace the kubeconfigs of clusters now.

        The old one keeps working until it expires by itself; the new one is tried before it is stored.

        \b
        hortus rotate blue green
        hortus rotate --all
        """
        run(_rotate(connect(), timeout if wait else None, **given))

    @app.command(panel="Clusters")
    @NAME
    @NAMESPACE
    @OUTPUT
    def tree(name: str, namespace: str, output: OutputFormat) -> None:
        """Show a cluster and all behind it, with health.

        From the Runtime, where there is one, to its GardenerCluster, Secret, Shoot and an API server that answers.

        Exit code 1 when something in the tree is unhealthy.
        """
        run(_tree(connect(), name, namespace, output))


async def _kubeconfig(connections: Connections, name: str, namespace: str, delivery: Delivery) -> None:
    from hortus.domains.credentials.lookup import read_secret
    from hortus.domains.credentials.naming import find_cluster, parse_name

    async with connections.management() as client:
        stored = await read_secret(client, await find_cluster(client, name, namespace))
    deliver(stored, delivery, connections, parse_name(name)[1])


async def _rotate(
    connections: Connections,
    timeout: float | None,
    *,
    names: tuple[str, ...],
    labels: str,
    everything: bool,
    namespace: str,
    yes: bool,
) -> None:
    from hortus.domains.credentials.lookup import cluster_of
    from hortus.domains.credentials.naming import find_cluster
    from hortus.domains.credentials.types import GARDENER_CLUSTERS

    selection = TargetSelection(names, labels, everything)
    selection.check()
    async with connections.management() as client:
        if selection.names:
            named = [await find_cluster(client, name, namespace) for name in selection.names]
            chosen = list({cluster.key: cluster for cluster in named}.values())
        else:
            chosen = [cluster_of(found) for found in await select(client, GARDENER_CLUSTERS, selection, namespace)]
            if chosen:
                what = counted("GardenerCluster", [cluster.metadata.name for cluster in chosen])
                confirm(f"Rotate {what} in namespace {namespace} of {client.host}?", yes=yes)
        await for_each(chosen, partial(_rotate_one, client, timeout))


async def _rotate_one(client: Client, timeout: float | None, cluster: GardenerCluster) -> str:
    from hortus.domains.credentials.lookup import force_rotation, rotation_done

    name, began = cluster.metadata.name, time.monotonic()
    asked = await force_rotation(client, cluster)
    if timeout is None:
        return f"gardenercluster/{name} rotation asked for"
    failure = await rotation_done(client, asked, timeout)
    if failure is None:
        return f"gardenercluster/{name} rotated in {time.monotonic() - began:.1f} s"
    raise CommandError(f"gardenercluster/{name} was not rotated within {timeout:g} s: {failure}", code=EXIT_TIMEOUT)


async def _tree(connections: Connections, name: str, namespace: str, format: OutputFormat) -> None:
    from hortus.domains.credentials.lookup import build_tree

    async with connections.management() as client, open_garden(connections, client, namespace) as garden:
        root = await build_tree(client, garden, name, namespace, time.time())
    if not format.tabular:
        import msgspec

        plain(msgspec.to_builtins(root), format)
    else:
        for branch, node in root.lines():
            mark = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "yellow")}[node.healthy]
            click.echo(f"{branch}{click.style(mark[0], fg=mark[1])} {node.kind} {clean(node.name)}  {clean(node.note)}")
    if not root.well:
        raise SystemExit(EXIT_ERROR)
