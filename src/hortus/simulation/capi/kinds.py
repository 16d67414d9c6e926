"""The kinds of Cluster API that the simulation serves, and its labels, annotations and finalizers."""

from __future__ import annotations

from typing import Final

from hortus.kube.objects import Resource

GROUP: Final = "cluster.x-k8s.io"
RUNTIME_GROUP: Final = "runtime.cluster.x-k8s.io"
VERSIONS: Final = ("v1beta1", "v1beta2")
"""Served versions of all kinds but ExtensionConfig; the last one is stored."""
CLUSTERS: Final = Resource(GROUP, "v1beta2", "clusters", "Cluster")
CLUSTER_CLASSES: Final = Resource(GROUP, "v1beta2", "clusterclasses", "ClusterClass")
EXTENSION_CONFIGS: Final = Resource(RUNTIME_GROUP, "v1alpha1", "extensionconfigs", "ExtensionConfig", namespaced=False)

CLUSTER_FINALIZER: Final = "cluster.cluster.x-k8s.io"
CLUSTER_NAME: Final = "cluster.x-k8s.io/cluster-name"
"""Label of all objects of a Cluster."""
TOPOLOGY_OWNED: Final = "topology.cluster.x-k8s.io/owned"
"""Label of the objects that were made from a topology."""
CLONED_FROM: Final = "cluster.x-k8s.io/cloned-from-name"
"""Annotation with the template that an object was made from."""
PAUSED: Final = "cluster.x-k8s.io/paused"
PENDING_HOOKS: Final = "runtime.cluster.x-k8s.io/pending-hooks"
"""Annotation with the hooks that are still to be called, separated by commas."""
SECRET_TYPE: Final = "cluster.x-k8s.io/secret"  # noqa: S105 - a type of Secrets
