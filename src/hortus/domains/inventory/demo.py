"""The namespace of the fleet in `hortus up`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hortus.kube.objects import Object, Resource

CLUSTER_SET: Final = "multicluster.x-k8s.io/clusterset"
"""Label of a namespace with ClusterProfiles: the name of their cluster set (KEP-4322)."""
_FLEET: Final = "fleet"


def namespaces() -> Iterator[tuple[Resource, Object]]:
    """The namespace that --fleet-namespace names by default, labelled with its cluster set."""
    yield (
        Resource("", "v1", "namespaces", "Namespace", namespaced=False),
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": _FLEET, "labels": {CLUSTER_SET: _FLEET}},
        },
    )
