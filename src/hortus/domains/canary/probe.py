"""The work of a run inside its cluster, by the kubeconfig that users of it would get: see nodes, write, read, delete.

Each step may be repeated, and be cut off anywhere. Only what carries the run's label is deleted.
"""

from __future__ import annotations

from hortus.domains.canary import service
from hortus.domains.canary.book import CONFIG_MAPS, NAME, ConfigMap
from hortus.domains.canary.service import PAUSE
from hortus.engine import NEVER, StepError, metadata_of
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import Object, Resource, shaped

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
FIELD_MANAGER = "hortus-canary"

EMPTYING = 2.0
"""Seconds until the namespace is read again while its cluster removes what is in it."""


async def use(cluster: Client, run: str) -> None:
    """Nodes are Ready; a ConfigMap is written, read and deleted in a namespace of our own. Raises StepError."""
    nodes = (await cluster.list(NODES)).items
    waiting = service.unready(nodes)
    if not nodes or waiting:
        text = f"{len(nodes) - len(waiting)} of {len(nodes)} nodes are Ready {', '.join(waiting[:5])}"
        raise StepError(text.rstrip(), after=PAUSE)
    await _namespace(cluster, run)
    metadata: Object = {"name": NAME, "namespace": NAME, "labels": {service.RUN: run}}
    data = {"run": run}
    await cluster.apply(CONFIG_MAPS, {"metadata": metadata, "data": data}, field_manager=FIELD_MANAGER)
    found = shaped(await cluster.get(CONFIG_MAPS, NAME, NAME), ConfigMap)
    if found is None or found.data != data:
        text = str(found.data if found is not None else None)
        raise StepError(f"the cluster does not give back what was written: {text[:100]}", after=NEVER)
    await cluster.delete(CONFIG_MAPS, NAME, NAME, uid=found.metadata.uid)


async def tidy(cluster: Client, run: str) -> None:
    """Delete the namespace of the run in the cluster. Raises StepError while the namespace is being deleted."""
    try:
        namespace = metadata_of(await cluster.get(NAMESPACES, NAME))
        if service.run_of(namespace) != run:
            return
        if not namespace.deletion_timestamp:
            await cluster.delete(NAMESPACES, NAME, uid=namespace.uid)
    except NotFound:
        return
    raise StepError(f"namespace {NAME} in the cluster is not gone yet", after=EMPTYING)


async def _namespace(cluster: Client, run: str) -> None:
    try:
        await cluster.create(NAMESPACES, {"metadata": {"name": NAME, "labels": {service.RUN: run}}})
    except AlreadyExists:
        if service.run_of(metadata_of(await cluster.get(NAMESPACES, NAME))) != run:
            raise StepError(f"namespace {NAME} in the cluster was made by somebody else", after=NEVER) from None
