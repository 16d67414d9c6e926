"""Workload clusters behind simulated shoots: logical clusters of the embedded API server, filled as gardenlet would.

One connection serves all of them: they share the server, and the path says which one is meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import orjson

from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import Object, Resource
from hortus.simulation.garden.kinds import LOGICAL_CLUSTERS

ADMIN_GROUPS = ("gardener.cloud:system:admins", "gardener.cloud:project:admins")
VIEWER_GROUPS = ("gardener.cloud:system:viewers", "gardener.cloud:project:viewers")
_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
_NODES = Resource("", "v1", "nodes", "Node", namespaced=False)

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
_OIDC_EXTENSION = "shoot-oidc-service"
OPENID_CONNECTS: Object = {
    "apiVersion": CRDS.api_version,
    "kind": CRDS.kind,
    "metadata": {"name": "openidconnects.authentication.gardener.cloud"},
    "spec": {
        "group": "authentication.gardener.cloud",
        "names": {"kind": "OpenIDConnect", "plural": "openidconnects", "singular": "openidconnect"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
            }
        ],
    },
}
"""What the extension shoot-oidc-service installs in a cluster, without its rules."""


class WorkloadClusters:
    """Makes and removes them. `client` is the management cluster as a user who is admin of every logical cluster."""

    def __init__(self, client: Client, *, with_nodes: bool) -> None:
        self._client = client
        self._with_nodes = with_nodes

    async def ensure(self, name: str, shoot: Object) -> None:
        """Have the cluster and what belongs into it. Safe to repeat."""
        cluster = {
            "apiVersion": LOGICAL_CLUSTERS.api_version,
            "kind": LOGICAL_CLUSTERS.kind,
            "metadata": {"name": name},
            "spec": {"displayName": f"shoot {shoot['metadata']['namespace']}/{shoot['metadata']['name']}"},
        }
        with suppress(AlreadyExists):
            await self._client.create(LOGICAL_CLUSTERS, cluster)
        if _serves_oidc(shoot):
            await self._create(name, CRDS, OPENID_CONNECTS)
        for resource, obj in _contents(name, shoot, with_nodes=self._with_nodes):
            await self._create(name, resource, obj)

    async def remove(self, name: str) -> None:
        """Remove the cluster with all it holds. Safe to repeat."""
        with suppress(NotFound):
            await self._client.delete(LOGICAL_CLUSTERS, name)

    async def _create(self, cluster: str, resource: Resource, obj: Object) -> None:
        path = f"/clusters/{cluster}{resource.path(obj['metadata'].get('namespace', ''))}"
        with suppress(AlreadyExists):
            await self._client.request("POST", path, orjson.dumps(obj))


def _serves_oidc(shoot: Object) -> bool:
    extensions = shoot["spec"].get("extensions") or ()
    return any(found.get("type") == _OIDC_EXTENSION and not found.get("disabled") for found in extensions)


def _contents(name: str, shoot: Object, *, with_nodes: bool) -> Iterable[tuple[Resource, Object]]:
    yield _BINDINGS, _binding("gardener.cloud:system:admins", "cluster-admin", ADMIN_GROUPS)
    yield _BINDINGS, _binding("gardener.cloud:system:viewers", "view", VIEWER_GROUPS)
    yield _CONFIG_MAPS, _shoot_info(shoot)
    if with_nodes:
        for worker in (shoot["spec"].get("provider") or {}).get("workers") or ():
            for index in range(worker["minimum"]):
                yield _NODES, _node(name, shoot, worker, index)


def _binding(name: str, role: str, groups: Iterable[str]) -> Object:
    return {
        "apiVersion": _BINDINGS.api_version,
        "kind": _BINDINGS.kind,
        "metadata": {"name": name, "labels": {"resources.gardener.cloud/managed-by": "gardener"}},
        "roleRef": {"apiGroup": _BINDINGS.group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _BINDINGS.group, "kind": "Group", "name": group} for group in groups],
    }


def _shoot_info(shoot: Object) -> Object:
    spec = shoot["spec"]
    networking = spec.get("networking") or {}
    data = {
        "shootName": shoot["metadata"]["name"],
        "projectName": shoot["metadata"]["namespace"].removeprefix("garden-"),
        "provider": spec["provider"]["type"],
        "region": spec["region"],
        "kubernetesVersion": (spec.get("kubernetes") or {}).get("version", ""),
        "podNetwork": networking.get("pods", ""),
        "serviceNetwork": networking.get("services", ""),
        "nodeNetwork": networking.get("nodes", ""),
        "extensions": ",".join(extension["type"] for extension in spec.get("extensions") or ()),
        "egressCIDRs": "203.0.113.7/32",
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "shoot-info", "namespace": "kube-system"},
        "data": data,
    }


def _node(name: str, shoot: Object, worker: Object, index: int) -> Object:
    zones = worker.get("zones") or [""]
    zone = zones[index % len(zones)]
    version = (shoot["spec"].get("kubernetes") or {}).get("version") or "1.32.0"
    labels = {
        "kubernetes.io/hostname": f"{name}-{worker['name']}-{index}",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": worker["machine"].get("architecture", "amd64"),
        "node.kubernetes.io/instance-type": worker["machine"]["type"],
        "topology.kubernetes.io/region": shoot["spec"]["region"],
        "worker.gardener.cloud/pool": worker["name"],
        "worker.gardener.cloud/kubernetes-version": version,
        **({"topology.kubernetes.io/zone": zone} if zone else {}),
        **(worker.get("labels") or {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": labels["kubernetes.io/hostname"], "labels": labels},
        "spec": {"providerID": f"simulated:///{name}/{worker['name']}/{index}"},
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "simulated kubelet is ready",
                    "lastHeartbeatTime": shoot["metadata"]["creationTimestamp"],
                    "lastTransitionTime": shoot["metadata"]["creationTimestamp"],
                }
            ],
            "nodeInfo": _node_info(version, labels["kubernetes.io/arch"]),
        },
    }


def _node_info(version: str, architecture: str) -> Object:
    return {
        "architecture": architecture,
        "bootID": "",
        "containerRuntimeVersion": "containerd://2.0.0",
        "kernelVersion": "6.6.0",
        "kubeProxyVersion": f"v{version}",
        "kubeletVersion": f"v{version}",
        "machineID": "",
        "operatingSystem": "linux",
        "osImage": "Simulated Linux",
        "systemUUID": "",
    }
