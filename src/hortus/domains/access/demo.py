"""The ClusterAccess of `hortus up`: a client that reads the pods of one namespace of the first demo cluster."""

from __future__ import annotations

from collections.abc import Iterator

from hortus.domains import DemoFleet
from hortus.domains.access.types import CLUSTER_ACCESSES
from hortus.domains.credentials.types import HOME
from hortus.kube.objects import Object, Resource


def accesses(fleet: DemoFleet) -> Iterator[tuple[Resource, Object]]:
    """One ClusterAccess if there is a cluster."""
    for name in fleet.names[:1]:
        access = f"{name}-reader"
        rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
        yield (
            CLUSTER_ACCESSES,
            {
                "apiVersion": CLUSTER_ACCESSES.api_version,
                "kind": CLUSTER_ACCESSES.kind,
                "metadata": {"name": access, "namespace": HOME},
                "spec": {
                    "clusterRef": {"kind": "Runtime", "name": name},
                    "client": "reader",
                    "namespaces": ["default"],
                    "rules": [rule],
                    "secret": {"name": f"{access}-kubeconfig"},
                },
            },
        )
