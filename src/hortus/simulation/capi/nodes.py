"""Nodes of workload clusters: those that the machines of a Cluster's topology would join as.

The control plane has as many as `spec.topology.controlPlane.replicas` says, and each machine deployment or machine pool
as many as its own number or, under the autoscaler, its least. A node's name says its group and the version of its
kubelet, so that an upgrade of the control plane replaces all nodes. No Machine object is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import Object, ObjectKey, key_of, shaped
from hortus.simulation.capi.kinds import CLUSTER_NAME
from hortus.simulation.workloads.running import NODES

CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
_SMALLEST_GROUP: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
_PROPAGATED: Final = ("node-role.kubernetes.io/", "node-restriction.kubernetes.io/", "node.cluster.x-k8s.io/")
"""Prefixes of the labels that Cluster API hands on from machines to nodes (its book, "Metadata propagation")."""


class _Metadata(msgspec.Struct):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Group(msgspec.Struct, rename="camel"):
    """The part of a control plane, machine deployment or machine pool that decides over nodes."""

    name: str = ""
    replicas: int | None = None
    failure_domain: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)

    @property
    def count(self) -> int:
        smallest = self.metadata.annotations.get(_SMALLEST_GROUP, "")
        if self.replicas is not None:
            return self.replicas
        return int(smallest) if smallest.isdecimal() else 1


class _Workers(msgspec.Struct, rename="camel"):
    machine_deployments: list[_Group] = []
    machine_pools: list[_Group] = []


class _Topology(msgspec.Struct, rename="camel"):
    control_plane: _Group = msgspec.field(default_factory=_Group)
    workers: _Workers = msgspec.field(default_factory=_Workers)


class _Spec(msgspec.Struct):
    topology: _Topology = msgspec.field(default_factory=_Topology)


class _Cluster(msgspec.Struct):
    spec: _Spec


class WantedNode(NamedTuple):
    """A node that there should be."""

    name: str
    labels: dict[str, str]
    is_control_plane: bool


def wanted_nodes(cluster: Object, version: str) -> dict[str, WantedNode]:
    """The nodes of a Cluster whose control plane has that version, by name; none where the topology is unreadable."""
    found = shaped(cluster, _Cluster)
    if found is None:
        return {}
    topology, name = found.spec.topology, key_of(cluster).name
    workers = [*topology.workers.machine_deployments, *topology.workers.machine_pools]
    return {
        node.name: node
        for node in (
            *_group(name, topology.control_plane, version, is_control_plane=True),
            *(node for one in workers for node in _group(f"{name}-{one.name}", one, version, is_control_plane=False)),
        )
    }


def _group(name: str, group: _Group, version: str, *, is_control_plane: bool) -> Iterator[WantedNode]:
    labels = {label: value for label, value in group.metadata.labels.items() if label.startswith(_PROPAGATED)}
    if is_control_plane:
        labels[CONTROL_PLANE] = ""
    if group.failure_domain:
        labels["topology.kubernetes.io/zone"] = group.failure_domain
    for number in range(group.count):
        yield WantedNode(f"{name}-{_digest(f'{name}/{version}/{number}')[:5]}", labels, is_control_plane)


def node_object(node: WantedNode, cluster: ObjectKey, version: str) -> Object:
    """The Node as its kubelet and Cluster API would have written it."""
    address = int(_digest(node.name)[:4], 16)
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "50Gi"}
    spec: Object = {"providerID": f"simulated:////{node.name}"}
    if node.is_control_plane:
        spec["taints"] = [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]
    return {
        "apiVersion": NODES.api_version,
        "kind": NODES.kind,
        "metadata": {
            "name": node.name,
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": node.name,
                "kubernetes.io/os": "linux",
                **node.labels,
            },
            "annotations": {
                CLUSTER_NAME: cluster.name,
                "cluster.x-k8s.io/cluster-namespace": cluster.namespace,
                "cluster.x-k8s.io/machine": node.name,
            },
        },
        "spec": spec,
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "addresses": [
                {"type": "InternalIP", "address": f"172.18.{address >> 8}.{address & 255}"},
                {"type": "Hostname", "address": node.name},
            ],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "containerd://2.0.0",
                "kernelVersion": "6.6.0",
                "kubeProxyVersion": version,
                "kubeletVersion": version,
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "Simulated Linux",
                "systemUUID": "",
            },
        },
    }


class CapiNodes:
    """Keeps the nodes of workload clusters. What a cluster was given is remembered: no request while it stays so."""

    def __init__(self) -> None:
        self._given: dict[ObjectKey, tuple[str, frozenset[str]]] = {}

    async def ensure(self, client: Client, cluster: Object, version: str) -> None:
        """Create the nodes that are missing in the cluster that `client` leads to, delete others. Raises KubeError."""
        key, wanted = key_of(cluster), wanted_nodes(cluster, version)
        given = (cluster["metadata"]["uid"], frozenset(wanted))
        if self._given.get(key) == given:
            return
        # Ours alone: a node that somebody joined by hand is none of a machine.
        present = [node for node in (await client.list(NODES)).items if _is_of(node, key)]
        for name in sorted(wanted.keys() - _names(present)):
            with suppress(AlreadyExists):
                await client.create(NODES, node_object(wanted[name], key, version))
        for name in sorted(_names(present) - wanted.keys()):
            with suppress(NotFound):
                await client.delete(NODES, name)
        self._given[key] = given

    def forget(self, cluster: ObjectKey) -> None:
        """The cluster is gone."""
        self._given.pop(cluster, None)


def _is_of(node: Object, cluster: ObjectKey) -> bool:
    return bool((node["metadata"].get("annotations") or {}).get(CLUSTER_NAME) == cluster.name)


def _names(nodes: Iterable[Object]) -> set[str]:
    return {key_of(node).name for node in nodes}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


__all__ = ["CONTROL_PLANE", "CapiNodes", "node_object", "wanted_nodes"]
