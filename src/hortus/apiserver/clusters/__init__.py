"""Logical clusters: many Kubernetes APIs with their own objects, credentials and roles in one server.

`LogicalClusters` is the registry of the active ones; `definition` is the kind LogicalCluster by which they are made;
`LogicalClusters.issue` makes client certificates, `certificate_kubeconfig` and `token_kubeconfig` make kubeconfigs.
"""

from __future__ import annotations

from hortus.apiserver.authn.certificates import IssuedCertificate
from hortus.apiserver.clusters.definition import RESOURCE, definition
from hortus.apiserver.clusters.issuing import certificate_kubeconfig, token_kubeconfig
from hortus.apiserver.clusters.registry import BUCKET, ROOT, LogicalCluster, LogicalClusters

__all__ = [
    "BUCKET",
    "RESOURCE",
    "ROOT",
    "IssuedCertificate",
    "LogicalCluster",
    "LogicalClusters",
    "certificate_kubeconfig",
    "definition",
    "token_kubeconfig",
]
