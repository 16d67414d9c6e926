"""The kinds of Flux that the simulation serves, and the names that its controllers write."""

from __future__ import annotations

from typing import Final

from hortus.kube.objects import Resource

HELM_RELEASES: Final = Resource("helm.toolkit.fluxcd.io", "v2", "helmreleases", "HelmRelease")
OCI_REPOSITORIES: Final = Resource("source.toolkit.fluxcd.io", "v1", "ocirepositories", "OCIRepository")

FINALIZER: Final = "finalizers.fluxcd.io"
HELM_CONTROLLER: Final = "helm-controller"
"""Name of the controller, and its field manager in workload clusters."""
SOURCE_CONTROLLER: Final = "source-controller"
REQUESTED: Final = "reconcile.fluxcd.io/requestedAt"
"""Annotation by which people ask for a reconcile; `flux reconcile` writes it."""
HELM_LABEL_GROUP: Final = HELM_RELEASES.group
"""Prefix of the labels by which an object names its HelmRelease."""
