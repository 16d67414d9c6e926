"""Workload clusters behind simulated shoots: logical clusters of the embedded API server, filled as gardenlet would.

One connection serves all of them: they share the server, and the path says which one is meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import orjson

from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, NotFound, ServiceUnavailable
from hortus.kube.objects import Object, Resource
from hortus.simulation.garden.kinds import LOGICAL_CLUSTERS, project_of
from hortus.simulation.garden.machines import Machines, step

ADMIN_GROUPS = ("gardener.cloud:system:admins", "gardener.cloud:project:admins")
VIEWER_GROUPS = ("gardener.cloud:system:viewers", "gardener.cloud:project:viewers")
_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")

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
"""The CRD that the extension shoot-oidc-service installs in a cluster, without its rules."""


class WorkloadClusters:
    """Makes and removes them. `client` is the management cluster as a user who is admin of every logical cluster."""

    def __init__(
        self, client: Client, *, with_nodes: bool, machines: Machines | None = None, skips_unread: bool = False
    ) -> None:
        """With `skips_unread` nothing is done in a cluster whose objects cannot be read, as in a plan."""
        self._client = client
        self._with_nodes = with_nodes
        self._skips_unread = skips_unread
        self._machines = machines or Machines()
        self._filled: dict[str, Object] = {}
        """By cluster: the data of shoot-info that was last written there."""

    async def ensure(self, name: str, shoot: Object) -> bool:
        """Create or repair the cluster and its contents; False while nodes are still to be replaced. Safe to repeat."""
        new = await self._make(name, shoot)
        try:
            await self._fill(name, shoot)
            return not self._with_nodes or await step(self._client, name, shoot, self._machines, new=new)
        except ServiceUnavailable:
            if not self._skips_unread:
                raise
            return True

    async def remove(self, name: str) -> None:
        """Remove the cluster with all it holds. Safe to repeat."""
        self._filled.pop(name, None)
        with suppress(NotFound):
            await self._client.delete(LOGICAL_CLUSTERS, name)

    async def _make(self, name: str, shoot: Object) -> bool:
        """True when there was none."""
        if name in self._filled:
            return False
        cluster = {
            "apiVersion": LOGICAL_CLUSTERS.api_version,
            "kind": LOGICAL_CLUSTERS.kind,
            "metadata": {"name": name},
            "spec": {"displayName": f"shoot {shoot['metadata']['namespace']}/{shoot['metadata']['name']}"},
        }
        try:
            await self._client.create(LOGICAL_CLUSTERS, cluster)
        except AlreadyExists:
            return False
        return True

    async def _fill(self, name: str, shoot: Object) -> None:
        info = _shoot_info(shoot)
        written = self._filled.get(name)
        if written == info["data"]:
            return
        if written is None:
            for resource, obj in _contents():
                await self._create(name, resource, obj)
        if _serves_oidc(shoot):
            await self._create(name, CRDS, OPENID_CONNECTS)
        if not await self._create(name, _CONFIG_MAPS, info):
            path = f"/clusters/{name}{_CONFIG_MAPS.path('kube-system')}/shoot-info"
            body = orjson.dumps({"data": info["data"]})
            await self._client.request("PATCH", path, body, content_type="application/merge-patch+json")
        self._filled[name] = info["data"]

    async def _create(self, cluster: str, resource: Resource, obj: Object) -> bool:
        """True when it was not there."""
        path = f"/clusters/{cluster}{resource.path(obj['metadata'].get('namespace', ''))}"
        try:
            await self._client.request("POST", path, orjson.dumps(obj))
        except AlreadyExists:
            return False
        return True


def _serves_oidc(shoot: Object) -> bool:
    extensions = shoot["spec"].get("extensions") or ()
    return any(found.get("type") == _OIDC_EXTENSION and not found.get("disabled") for found in extensions)


def _contents() -> Iterable[tuple[Resource, Object]]:
    yield _BINDINGS, _binding("gardener.cloud:system:admins", "cluster-admin", ADMIN_GROUPS)
    yield _BINDINGS, _binding("gardener.cloud:system:viewers", "view", VIEWER_GROUPS)


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
        "projectName": project_of(shoot["metadata"]["namespace"]),
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
