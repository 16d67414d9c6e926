"""`hortus access`: the kubeconfig of a request at the terminal."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import typer

from hortus.terminal import CommandError, Connections, completing, raw, run

Connect = Callable[[], Connections]
DEFAULT_NAMESPACE = "kcp-system"


async def _names(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.domains.access.types import CLUSTER_ACCESSES

    async with connections.management() as client:
        listed = await client.list(CLUSTER_ACCESSES, given.get("namespace") or DEFAULT_NAMESPACE, metadata_only=True)
        return [access["metadata"]["name"] for access in listed.items]


def register(app: typer.Typer, connect: Connect) -> None:
    """Add this domain's commands to `app`; `connect` tells which clusters the person means."""

    @app.command(rich_help_panel="Clusters")
    def access(
        name: Annotated[
            str, typer.Argument(metavar="NAME", help="Name of the ClusterAccess.", autocompletion=completing(_names))
        ],
        namespace: Annotated[
            str, typer.Option("--namespace", "-n", help="Namespace of the ClusterAccess.")
        ] = DEFAULT_NAMESPACE,
    ) -> None:
        """Print the kubeconfig that a ClusterAccess asked for.

        It may do what the request says and nothing else. Without one, says why there is none and whose turn it is.

        \b
        hortus access broker > broker.yaml && kubectl --kubeconfig broker.yaml auth can-i --list
        """
        run(_access(connect(), name, namespace))


async def _access(connections: Connections, name: str, namespace: str) -> None:
    from hortus.domains.access import service
    from hortus.domains.access.types import CLUSTER_ACCESSES
    from hortus.engine import find_condition
    from hortus.engine.remote import SECRETS
    from hortus.kube.errors import NotFound

    async with connections.management() as client:
        try:
            request = await client.get(CLUSTER_ACCESSES, name, namespace)
        except NotFound:
            listed = await client.list(CLUSTER_ACCESSES, namespace, limit=20)
            names = ", ".join(found["metadata"]["name"] for found in listed.items[:20]) or "none"
            raise CommandError(f"no ClusterAccess {name} in namespace {namespace}; there are: {names}") from None
        try:
            secret = await client.get(SECRETS, service.secret_key(request).name, namespace)
        except NotFound:
            secret = {"metadata": {}}
    value = (secret.get("data") or {}).get(service.data_key(request))
    if not value or not service.is_ours(request, secret):
        found = find_condition(request, "Ready") or {}
        why = f"{found['reason']}: {found['message']}" if found else "nobody looked at it yet (`hortus status`)"
        raise CommandError(f"ClusterAccess {name} has no kubeconfig. {why}")
    raw(base64.b64decode(value))
