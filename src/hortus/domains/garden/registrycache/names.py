"""Names of the registry-cache extension and of the objects that it makes; they are those of the Go extension."""

from __future__ import annotations

from typing import Final

from hortus.domains.garden.extension.topic import ExtensionFacts
from hortus.engine.rbac import Permission
from hortus.kube.objects import Resource

TYPE: Final = "registry-cache"
FACTS: Final = ExtensionFacts(
    type=TYPE, seed_resource="extension-registry-cache-seed", shoot_resource="extension-registry-cache", webhooks=True
)
API_VERSION: Final = "registry.extensions.gardener.cloud/v1alpha3"
KIND: Final = "RegistryConfig"
STATUS_KIND: Final = "RegistryStatus"

SECRETS: Final = Resource("", "v1", "secrets", "Secret")
SERVICES: Final = Resource("", "v1", "services", "Service")
NAMESPACE: Final = "kube-system"
PORT: Final = 5000
DEBUG_PORT: Final = 5001
CERTIFICATES: Final = "registry-cache-certificates"
"""Secret in the seed with the authorities and all certificates, which nothing mounts."""
BUNDLE: Final = "ca-registry-cache"
"""Begin of the name of the Secret in the seed that nodes get the authorities from; a digest follows."""
BUNDLE_KEY: Final = "bundle.crt"
UPSTREAM_LABEL: Final = "upstream-host"
UPSTREAM_NOTE: Final = "upstream"
REMOTE_NOTE: Final = "remote-url"
"""Annotations of Services, by which the Go extension finds the endpoint of an upstream."""

PERMISSIONS: Final = (
    Permission("", (SECRETS.plural,), ("get",), "reads credentials of registries, and the way into a Shoot"),
)
"""On the seed, beyond those of the frame."""
