"""Cluster stacks in the demo of `hortus up`: a namespace with a ClusterStack of the sample stack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hortus.domains import DemoFleet
from hortus.domains.stacks.names import STABLE
from hortus.domains.stacks.types import CLUSTER_STACKS
from hortus.kube.objects import Object, Resource

NAMESPACE: Final = "stacks"
_NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


def objects(fleet: DemoFleet) -> Iterator[tuple[Resource, Object]]:
    """The namespace, and the ClusterStack in it; none in a fleet without clusters."""
    if not fleet.names:
        return
    yield _NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield (
        CLUSTER_STACKS,
        {
            "apiVersion": CLUSTER_STACKS.api_version,
            "kind": CLUSTER_STACKS.kind,
            "metadata": {"name": "sample-1-34", "namespace": NAMESPACE},
            "spec": {
                "provider": "docker",
                "name": "sample",
                "kubernetesVersion": "1.34",
                "channel": STABLE,
                "autoSubscribe": False,
                "noProvider": True,
                "versions": ["v1"],
            },
        },
    )
