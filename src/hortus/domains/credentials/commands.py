"""`hortus kubeconfig`, `hortus rotate`, `hortus tree`: a cluster's credentials at the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from hortus.kube.objects import Object, key_of
from hortus.terminal import (
    EXIT_ERROR,
    EXIT_TIMEOUT,
    CommandError,
    Connections,
    Format,
    clean,
    completing,
    plain,
    raw,
    run,
)

if TYPE_CHECKING:
    from hortus.kube.kubeconfig import Kubeconfig

Connect = Callable[[], Connections]
DEFAULT_NAMESPACE = "kcp-system"


async def _names(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.domains.credentials.types import GARDENER_CLUSTERS

    async with connections.management() as client:
        listed = await client.list(GARDENER_CLUSTERS, given.get("namespace") or DEFAULT_NAMESPACE, metadata_only=True)
        return [key_of(cluster).name for cluster in listed.items]


Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the GardenerCluster.", autocompletion=completing(_names))
]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the GardenerCluster.")]


def register(app: typer.Typer, connect: Connect) -> None:
    """Add this domain's commands to `app`; `connect` tells which clusters the person means."""

    @app.command(rich_help_panel="Clusters")
    def kubeconfig(
        name: Name,
        namespace: Namespace = DEFAULT_NAMESPACE,
        merge: Annotated[
            bool, typer.Option("--merge", help="Add it to your kubeconfig as a context instead of printing it.")
        ] = False,
        into: Annotated[
            Path | None, typer.Option(metavar="FILE", help="With --merge: this file, not ~/.kube/config.")
        ] = None,
        use: Annotated[bool, typer.Option("--use", help="With --merge: make it the current context.")] = False,
    ) -> None:
        """Print the kubeconfig of a cluster, or merge it into your own.

        \b
        Printed: hortus kubeconfig demo-1 > demo-1.yaml
        Merged:  hortus kubeconfig demo-1 --merge && kubectl --context demo-1 get nodes
        """
        if into is not None and not merge:
            raise typer.BadParameter("--into goes with --merge")
        run(_kubeconfig(connect(), name, namespace, into or Path.home() / ".kube" / "config" if merge else None, use))

    @app.command(rich_help_panel="Clusters")
    def rotate(
        name: Name,
        namespace: Namespace = DEFAULT_NAMESPACE,
        wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the new kubeconfig is there.")] = True,
        timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait.")] = 60.0,
    ) -> None:
        """Replace the kubeconfig of a cluster now.

        The old one keeps working until it expires by itself; the new one is tried before it is stored.
        """
        run(_rotate(connect(), name, namespace, timeout if wait else None))

    @app.command(rich_help_panel="Clusters")
    def tree(
        name: Name,
        namespace: Namespace = DEFAULT_NAMESPACE,
        output: Annotated[str, typer.Option("--output", "-o", help="table, json or yaml.")] = "table",
    ) -> None:
        """Show a cluster and all behind it, with health.

        From the Runtime, where there is one, to its GardenerCluster, Secret, Shoot and an API server that answers.

        Exit code 1 when something in the tree is unhealthy.
        """
        run(_tree(connect(), name, namespace, Format.parse(output)))


async def _kubeconfig(connections: Connections, name: str, namespace: str, into: Path | None, use: bool) -> None:
    from hortus.domains.credentials.lookup import read_cluster, read_secret
    from hortus.kube import kubeconfig

    async with connections.management() as client:
        cluster = await read_cluster(client, name, namespace)
        content, reference = await read_secret(client, cluster)
    found = kubeconfig.from_untrusted(content, origin=f"secret {reference}")
    if into is None:
        raw(content)
        return
    kubeconfig.merge_into(into, _current(found, name), use=use)
    typer.echo(f"Context {name} is in {into} (from secret {reference}). Try: kubectl --context {name} get ns")


def _current(found: Kubeconfig, name: str) -> Object:
    """The current context of `found` with its cluster and user, all three under the name of the cluster."""
    found.access()
    context = dict(found.contexts[found.current_context].body)
    cluster, user = found.clusters[context["cluster"]], found.users.get(context.get("user", ""))
    return {
        "clusters": [{"name": name, "cluster": dict(cluster.body)}],
        "users": [{"name": name, "user": dict(user.body) if user else {}}],
        "contexts": [{"name": name, "context": {**context, "cluster": name, "user": name}}],
        "current-context": name,
    }


async def _rotate(connections: Connections, name: str, namespace: str, timeout: float | None) -> None:
    from hortus.domains.credentials.lookup import force_rotation, read_cluster, rotation_done

    async with connections.management() as client:
        cluster = await read_cluster(client, name, namespace)
        asked = await force_rotation(client, cluster)
        if timeout is None:
            typer.echo(f"gardenercluster/{name} rotation asked for")
            return
        began = time.monotonic()
        failure = await rotation_done(client, asked, timeout)
        if failure is None:
            typer.echo(f"gardenercluster/{name} rotated in {time.monotonic() - began:.1f} s")
            return
        raise CommandError(f"gardenercluster/{name} was not rotated within {timeout:g} s: {failure}", code=EXIT_TIMEOUT)


async def _tree(connections: Connections, name: str, namespace: str, format: Format) -> None:
    from hortus.domains.credentials.lookup import build_tree

    async with connections.management() as client, connections.garden() as garden:
        root = await build_tree(client, garden, name, namespace, time.time())
    if not format.tabular:
        plain(msgspec.to_builtins(root), format)
    else:
        for branch, node in root.lines():
            mark = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "yellow")}[node.healthy]
            typer.echo(f"{branch}{typer.style(mark[0], fg=mark[1])} {node.kind} {clean(node.name)}  {clean(node.note)}")
    if not root.well:
        raise typer.Exit(EXIT_ERROR)
