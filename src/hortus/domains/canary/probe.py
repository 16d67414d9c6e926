"""What a run does inside its cluster, by the kubeconfig that users of it would get: look at nodes, write, read, delete.

Each step may be repeated, and be cut off anywhere. Only what carries the run's label is deleted.
"""

from __future__ import annotations

from hortus.domains.canary import service
from hortus.domains.canary.book import CONFIG_MAPS, NAME
from hortus.domains.canary.outcomes import Broken, Pending
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import Object, Resource

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
FIELD_MANAGER = "hortus-canary"

EMPTYING = 2.0
"""Seconds until the namespace is looked at again while its cluster removes what is in it."""


async def use(cluster: Client, run: str) -> None:
    """Nodes are Ready; a ConfigMap is written, read and deleted in a namespace of our own. Raises Pending, Broken."""
    nodes = (await cluster.list(NODES)).items
    waiting = service.unready(nodes)
    if not nodes or waiting:
        raise Pending(f"{len(nodes) - len(waiting)} of {len(nodes)} nodes are Ready {', '.join(waiting[:5])}".rstrip())
    await _namespace(cluster, run)
    metadata: Object = {"name": NAME, "namespace": NAME, "labels": {service.RUN: run}}
    written = {"metadata": metadata, "data": {"run": run}}
    await cluster.apply(CONFIG_MAPS, written, field_manager=FIELD_MANAGER)
    read = await cluster.get(CONFIG_MAPS, NAME, NAME)
    if read.get("data") != written["data"]:
        raise Broken(f"the cluster does not give back what was written: {str(read.get('data'))[:100]}")
    await cluster.delete(CONFIG_MAPS, NAME, NAME, uid=read["metadata"]["uid"])


async def tidy(cluster: Client, run: str) -> None:
    """Nothing of ours is in the cluster. Raises Pending while the namespace goes."""
    try:
        namespace = await cluster.get(NAMESPACES, NAME)
        if service.run_of(namespace) != run:
            return
        if not namespace["metadata"].get("deletionTimestamp"):
            await cluster.delete(NAMESPACES, NAME, uid=namespace["metadata"]["uid"])
    except NotFound:
        return
    raise Pending(f"namespace {NAME} in the cluster is not gone yet", after=EMPTYING)


async def _namespace(cluster: Client, run: str) -> None:
    try:
        await cluster.create(NAMESPACES, {"metadata": {"name": NAME, "labels": {service.RUN: run}}})
    except AlreadyExists:
        if service.run_of(await cluster.get(NAMESPACES, NAME)) != run:
            raise Broken(f"namespace {NAME} in the cluster was made by somebody else") from None
