"""`hortus stack list|upgrade|why|graph`: releases, the Clusters that use them, and the way to a newer one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hortus.terminal import CommandError, CommandGroup, Connect, Connections, Table, clean, confirm, print_table, run

if TYPE_CHECKING:
    from hortus.domains.stacks.capi import CapiCluster
    from hortus.domains.stacks.live import StacksView
    from hortus.domains.stacks.names import ReleaseName

_HEADS = ("Namespace", "Class", "Kubernetes", "Ready", "Phase", "Clusters", "Message")
_NAMESPACE = click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of the Cluster.")
_CLUSTER = click.argument("cluster", metavar="CLUSTER")


def register(stack: CommandGroup, connect: Connect) -> None:
    """Add the commands to the group of stacks."""
    _add_moving(stack, connect)
    _add_viewing(stack, connect)


def _add_moving(stack: CommandGroup, connect: Connect) -> None:
    @stack.command("list")
    def list_() -> None:
        """List the releases of all stacks, and how many Clusters use each."""
        run(_list(connect()))

    @stack.command()
    @_CLUSTER
    @_NAMESPACE
    @click.option("--to", "target", default="", metavar="CLASS", help="The class to move to; the latest without it.")
    @click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
    def upgrade(cluster: str, namespace: str, target: str, yes: bool) -> None:
        """Move a Cluster to a newer release of its stack.

        Class and Kubernetes version are changed together. Without --to the latest release of the Cluster's Kubernetes
        minor is taken, then that of the next minor.

        \b
        hortus stack upgrade shop -n team
        hortus stack upgrade shop -n team --to docker-ferrol-1-28-v1
        """
        run(_upgrade(connect(), cluster, namespace, target, yes=yes))


def _add_viewing(stack: CommandGroup, connect: Connect) -> None:
    @stack.command()
    @_CLUSTER
    @_NAMESPACE
    def why(cluster: str, namespace: str) -> None:
        """Explain the state of a Cluster's release and addons, and name the next step."""
        run(_why(connect(), cluster, namespace))

    @stack.command()
    @click.option(
        "--output",
        "-o",
        type=click.Choice(("mermaid", "svg")),
        metavar="PICTURE",
        default="mermaid",
        show_default=True,
        help="mermaid: a flowchart in Mermaid's notation; svg: a picture that any browser shows.",
    )
    def graph(output: str) -> None:
        """Draw stacks, releases, Clusters and addons as they are, those that failed with their reason.

        \b
        hortus stack graph > stacks.mmd
        hortus stack graph -o svg > stacks.svg
        """
        run(_graph(connect(), output))


async def _list(connections: Connections) -> None:
    from hortus.domains.stacks.live import gather, rows

    async with connections.management() as client:
        print_table(Table(_HEADS, list(rows(await gather(client)))))


async def _upgrade(connections: Connections, name: str, namespace: str, target: str, *, yes: bool) -> None:
    from hortus.domains.stacks.capi import CLUSTERS
    from hortus.domains.stacks.clusters import release_of
    from hortus.domains.stacks.live import gather

    async with connections.management() as client:
        view = await gather(client)
        cluster = _found(view, name, namespace)
        chosen = _chosen(view, cluster, target)
        release = next(
            one
            for one in view.releases
            if one.metadata.namespace == cluster.class_namespace and one.metadata.name == chosen.tag
        )
        version = release.status.kubernetes_version
        now = release_of(cluster)
        before = now.class_name if now is not None else cluster.class_name
        confirm(
            f"Move Cluster {cluster.key} from {before} ({cluster.version}) to {chosen.class_name} ({version})?", yes=yes
        )
        _, _, served = cluster.api_version.rpartition("/")
        resource = CLUSTERS[served]
        patch = {"spec": {"topology": {**class_patch(cluster, chosen.class_name), "version": version}}}
        await client.patch(resource, name, patch, namespace, field_manager="hortus-cli")
    click.echo(f"cluster {cluster.key} moves to {chosen.class_name}, Kubernetes {version}")


async def _why(connections: Connections, name: str, namespace: str) -> None:
    from hortus.domains.stacks.live import explained, gather

    async with connections.management() as client:
        view = await gather(client)
    for line in explained(view, _found(view, name, namespace)):
        click.echo(clean(line))


async def _graph(connections: Connections, output: str = "mermaid") -> None:
    from hortus.domains.stacks.graph import graph_of, mermaid
    from hortus.domains.stacks.live import gather

    async with connections.management() as client:
        graph = graph_of(await gather(client))
    if output == "svg":
        from hortus.domains.stacks.drawing import svg

        click.echo(svg(graph), nl=False)
        return
    for line in mermaid(graph):
        click.echo(clean(line))


def class_patch(cluster: CapiCluster, class_name: str) -> dict[str, object]:
    """The part of a topology that names a class, in the form that the Cluster has."""
    return {"classRef": {"name": class_name}} if cluster.names_class_by_ref else {"class": class_name}


def _found(view: StacksView, name: str, namespace: str) -> CapiCluster:
    found = next((one for one in view.clusters if (one.key.namespace, one.key.name) == (namespace, name)), None)
    if found is None:
        raise CommandError(f"Cluster {namespace}/{name} does not exist; name its namespace with -n")
    return found


def _chosen(view: StacksView, cluster: CapiCluster, target: str) -> ReleaseName:
    """The release to move to. Raises CommandError."""
    from hortus.domains.stacks.clusters import release_of
    from hortus.domains.stacks.live import is_newer, targets
    from hortus.domains.stacks.names import parse_either

    now, possible = release_of(cluster), targets(view, cluster)
    if now is None:
        raise CommandError(
            f"Cluster {cluster.key} uses {cluster.class_name or 'no class'}, which is of no cluster stack"
        )
    if target:
        wanted = parse_either(target)
        if wanted is None or wanted not in possible:
            offered = ", ".join(name.class_name for name in possible) or "none"
            raise CommandError(f"Cluster {cluster.key} cannot move to {target!r}; it can move to: {offered}")
        return wanted
    newer = [name for name in possible if is_newer(name, now)]
    same = [name for name in newer if name.kubernetes == now.kubernetes]
    if not newer:
        raise CommandError(f"Cluster {cluster.key} has the latest release of its stack that is ready, {now.class_name}")
    return (same or newer)[-1]
