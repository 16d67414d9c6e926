"""Fields of a Shoot that Gardener forbids from a version of Kubernetes on.

Source: gardener/gardener 1.150, pkg/api/core/validation/shoot.go and docs/usage/shoot/shoot_kubernetes_versions.md.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from hortus.kube.versions import Version, VersionError

OIDC_CONFIG: Final = "spec.kubernetes.kubeAPIServer.oidcConfig"
CLOUD_PROFILE_NAME: Final = "spec.cloudProfileName"
ADDONS: Final = "spec.addons"
OLD_BINDING: Final = "spec.secretBindingName"
DNS_REFERENCE: Final = "spec.dns.providers[].secretName"

FORBIDDEN_FROM: Final[Mapping[str, str]] = {
    OIDC_CONFIG: "1.32",
    "spec.kubernetes.clusterAutoscaler.maxEmptyBulkDelete": "1.33",
    "spec.kubernetes.kubeControllerManager.podEvictionTimeout": "1.33",
    CLOUD_PROFILE_NAME: "1.34",
    OLD_BINDING: "1.34",
    ADDONS: "1.35",
    DNS_REFERENCE: "1.35",
    "spec.kubernetes.kubeAPIServer.enableAnonymousAuthentication": "1.35",
    "spec.kubernetes.kubeAPIServer.watchCacheSizes.default": "1.35",
    "spec.kubernetes.kubeScheduler.kubeMaxPDVols": "1.35",
}
"""The first version of Kubernetes without a field, by the field's path."""


@functools.cache
def forbidden_since(field: str) -> tuple[int, int]:
    """Major and minor version of the first Kubernetes without a field of the table."""
    first = Version(FORBIDDEN_FROM[field])
    return first.major, first.minor


def is_forbidden(field: str, kubernetes: str) -> bool:
    """True when a Shoot of this version of Kubernetes may not have a field of the table; False for no version."""
    try:
        return Version(kubernetes) >= Version(FORBIDDEN_FROM[field])
    except VersionError:
        return False
