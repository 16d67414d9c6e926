"""`hortus access`: the kubeconfig of a request at the terminal."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import click

from hortus.terminal import (
    DEFAULT_NAMESPACE,
    CommandError,
    CommandGroup,
    Connect,
    Connections,
    completing,
    named,
    names_of,
    run,
)
from hortus.terminal.kubeconfigs import HANDED_OUT, Delivery, StoredKubeconfig, deliver


async def _names(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.domains.access.types import CLUSTER_ACCESSES

    return await names_of(CLUSTER_ACCESSES, connections, given.get("namespace") or DEFAULT_NAMESPACE)


def register(app: CommandGroup, connect: Connect) -> None:
    """Add this domain's commands to `app`; `connect` connects to the clusters that the user chose."""

    @app.command(panel="Clusters")
    @click.argument("name", metavar="NAME", help="Name of the ClusterAccess.", shell_complete=completing(_names))
    @click.option("--namespace", "-n", default=DEFAULT_NAMESPACE, help="Namespace of the ClusterAccess.")
    @HANDED_OUT
    def access(name: str, namespace: str, **given: Any) -> None:
        """Print the kubeconfig that a ClusterAccess asked for, or merge it into your own.

        It may do what the request says and nothing else. Where there is none, the error says why and who has to act.

        \b
        hortus access broker > broker.yaml
        kubectl --kubeconfig broker.yaml auth can-i --list
        """
        delivery = Delivery(**given)
        delivery.check()
        run(_access(connect(), name, namespace, delivery))


async def _access(connections: Connections, name: str, namespace: str, delivery: Delivery) -> None:
    from hortus.domains.access import service
    from hortus.domains.access.types import CLUSTER_ACCESSES, ClusterAccess
    from hortus.engine import read
    from hortus.engine.kubeconfigs import SECRETS, KubeconfigSecret
    from hortus.kube.errors import NotFound

    async with connections.management() as client:
        request = read(ClusterAccess, await named(client, CLUSTER_ACCESSES, name, namespace))
        try:
            found = await client.get(SECRETS, request.spec.secret.name, namespace)
        except NotFound:
            found = {"metadata": {"name": request.spec.secret.name}}
    secret = read(KubeconfigSecret, found)
    value = secret.data.get(request.spec.secret.key)
    if not value or not service.is_ours(request, secret):
        ready = next((known for known in request.status.conditions if known.type == "Ready"), None)
        why = f"{ready.reason}: {ready.message}" if ready else "nobody looked at it yet (`hortus status`)"
        raise CommandError(f"ClusterAccess {name} has no kubeconfig. {why}")
    stored = StoredKubeconfig(base64.b64decode(value), secret.key, request.spec.secret.key)
    deliver(stored, delivery, connections, name, example="auth can-i --list")
