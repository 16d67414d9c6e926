"""Workload clusters behind Clusters: logical clusters of the same server, and the Secrets that lead there."""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress
from typing import Final

import msgspec
import orjson

from hortus.kube import Client, yaml
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.kubeconfig.write import document
from hortus.kube.objects import Object, ObjectKey, Resource, key_of
from hortus.kube.secret import Secret
from hortus.simulation.capi.definitions import MANAGER
from hortus.simulation.capi.kinds import CLUSTER_NAME, SECRET_TYPE
from hortus.simulation.capi.nodes import CapiNodes
from hortus.simulation.capi.topology import owner_reference
from hortus.simulation.garden.kinds import LOGICAL_CLUSTERS

PREFIX: Final = "capi--"
"""Begins the names of these logical clusters."""
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
_ADMIN: Final = "kubernetes-admin"
_MASTERS: Final = "system:masters"
_LONGEST_NAME: Final = 63
_SECONDS: Final = 365 * 86400
"""The life of a client certificate, as kubeadm issues them."""


def logical_name(cluster: ObjectKey) -> str:
    """The logical cluster of a Cluster; a name that would be too long ends in a checksum."""
    name = f"{PREFIX}{cluster.namespace}--{cluster.name}"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def secret_name(cluster: str) -> str:
    """The name of the Secret with the kubeconfig of a Cluster."""
    return f"{cluster}-kubeconfig"


class CapiWorkloads:
    """Makes and removes them. `management` is administrator of every logical cluster."""

    def __init__(self, management: Client, *, keeps_kubeconfigs: bool = False) -> None:
        self._management = management
        self._keeps_kubeconfigs = keeps_kubeconfigs
        self._nodes = CapiNodes()

    def url(self, cluster: ObjectKey) -> str:
        """The address of a workload cluster."""
        return f"{self._management.access.server.rstrip('/')}/clusters/{logical_name(cluster)}"

    async def ensure(self, cluster: Object) -> None:
        """Create the workload cluster and its Secret, unless they exist. Raises KubeError."""
        metadata = cluster["metadata"]
        key = ObjectKey(metadata["namespace"], metadata["name"])
        server = await self._server(key)
        if server and self._keeps_kubeconfigs:
            return
        made = {"metadata": {"name": logical_name(key)}, "spec": {"displayName": f"Cluster {key}"}}
        with suppress(AlreadyExists):
            await self._management.create(LOGICAL_CLUSTERS, made)
        # The server may have come back on another port.
        if server != self.url(key):
            await self._write_secret(cluster, key)

    async def join_nodes(self, cluster: Object, version: str) -> None:
        """Make the workload cluster have the nodes of its topology, with kubelets of that version. Raises KubeError."""
        async with self.client(key_of(cluster)) as client:
            await self._nodes.ensure(client, cluster, version)

    async def remove(self, cluster: ObjectKey) -> None:
        """Remove the workload cluster with all it holds, and its Secret. Safe to repeat."""
        self._nodes.forget(cluster)
        with suppress(NotFound):
            await self._management.delete(LOGICAL_CLUSTERS, logical_name(cluster))
        with suppress(NotFound):
            await self._management.delete(SECRETS, secret_name(cluster.name), cluster.namespace)

    async def _server(self, key: ObjectKey) -> str:
        """The address to which the Secret leads; empty without one."""
        try:
            secret = await self._management.get(SECRETS, secret_name(key.name), key.namespace)
        except NotFound:
            return ""
        found = yaml.load(base64.b64decode((secret.get("data") or {}).get("value") or ""))
        return str(found["clusters"][0]["cluster"]["server"]) if found else ""

    async def _write_secret(self, cluster: Object, key: ObjectKey) -> None:
        path = f"{LOGICAL_CLUSTERS.path('')}/{logical_name(key)}/clientcertificate"
        asked = {"spec": {"username": _ADMIN, "groups": [_MASTERS], "expirationSeconds": _SECONDS}}
        issued = orjson.loads((await self._management.request("POST", path, orjson.dumps(asked))).body)["status"]
        kubeconfig = document(
            key.name,
            self.url(key),
            ca=issued["ca"].encode(),
            user=f"{key.name}-admin",
            certificate=issued["certificate"].encode(),
            key=Secret(issued["privateKey"]),
            context=f"{key.name}-admin@{key.name}",
        )
        await self._management.apply(
            SECRETS,
            {
                "metadata": {
                    "name": secret_name(key.name),
                    "namespace": key.namespace,
                    "labels": {CLUSTER_NAME: key.name},
                    "ownerReferences": [owner_reference(cluster)],
                },
                "type": SECRET_TYPE,
                "data": {"value": base64.b64encode(yaml.dump(kubeconfig).encode()).decode()},
            },
            field_manager=MANAGER,
        )

    def client(self, cluster: ObjectKey) -> Client:
        """A client of the workload cluster, for the simulation itself."""
        access = msgspec.structs.replace(self._management.access, server=self.url(cluster))
        return Client(access)
