"""Names of the Flux extension and of the objects around it, as Gardener, Flux and the Go extension have them."""

from __future__ import annotations

from typing import Final

from hortus.domains.garden.extension.topic import ExtensionFacts
from hortus.engine.rbac import Permission
from hortus.kube.objects import Resource

TYPE: Final = "shoot-flux"
BOOTSTRAPPED: Final = "FluxBootstrapped"
"""The condition that the Go extension has, too: Flux was installed, and its source and Kustomization were ready."""
CONTROLLERS_HEALTHY: Final = "SystemComponentsHealthy"
"""The condition of the Shoot to which the health of Flux's controllers counts."""
SOURCE_READY: Final = "FluxSourceReady"
KUSTOMIZATION_READY: Final = "FluxKustomizationReady"
FACTS: Final = ExtensionFacts(type=TYPE, reconcile="AfterWorker", health_condition=CONTROLLERS_HEALTHY, timeout="10m0s")

CONFIG_VERSION: Final = "flux.extensions.gardener.cloud/v1alpha1"
CONFIG_KIND: Final = "FluxConfig"
SOURCE_VERSION: Final = "source.toolkit.fluxcd.io/v1"
GIT: Final = "GitRepository"
OCI: Final = "OCIRepository"
KUSTOMIZATION_VERSION: Final = "kustomize.toolkit.fluxcd.io/v1"
KUSTOMIZATION: Final = "Kustomization"
GIT_REPOSITORIES: Final = Resource("source.toolkit.fluxcd.io", "v1", "gitrepositories", GIT)
OCI_REPOSITORIES: Final = Resource("source.toolkit.fluxcd.io", "v1", "ocirepositories", OCI)
KUSTOMIZATIONS: Final = Resource("kustomize.toolkit.fluxcd.io", "v1", "kustomizations", KUSTOMIZATION)
SOURCES: Final = {GIT: GIT_REPOSITORIES, OCI: OCI_REPOSITORIES}
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")

DEFAULT_NAME: Final = "flux-system"
"""Name and namespace of all that names none."""
DEFAULT_VERSION: Final = "v2.9.2"
DEFAULT_REGISTRY: Final = "ghcr.io/fluxcd"
DEFAULT_INTERVAL: Final = "1m0s"
DEFAULT_COMPONENTS: Final = (
    "source-controller",
    "kustomize-controller",
    "helm-controller",
    "notification-controller",
)
REQUIRED_COMPONENTS: Final = ("source-controller", "kustomize-controller")
KNOWN_COMPONENTS: Final = (
    *DEFAULT_COMPONENTS,
    "image-reflector-controller",
    "image-automation-controller",
    "source-watcher",
)

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "gardener-extension-shoot-flux"
"""Value of that label on the objects of a Shoot that the extension keeps; that of the Go extension."""
COPY_LABELS: Final = "gardener-extension-shoot-flux/copy-labels"
"""Annotation of a Secret whose labels are copied, too."""
SHOOT_INFO: Final = "shoot-info"
PERMISSIONS: Final = (
    Permission(
        "", (SECRETS.plural,), ("get",), "reads the Secrets that a configuration names, and the way into a Shoot"
    ),
)
"""On the seed, beyond those of the frame."""

FIELD_MANAGER: Final = "hortus-flux"
"""Manager of the fields that are applied in Shoots."""
SET_NAME: Final = "shoot-flux"
SET_NAMESPACE: Final = "kube-system"
"""Name and namespace of the ConfigMap in the Shoot that remembers the objects of Flux."""
SELF_MANAGED: Final = "kustomize.toolkit.fluxcd.io/name"
"""Label by which Flux marks what it applies: objects with it are Flux's own to keep."""
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
