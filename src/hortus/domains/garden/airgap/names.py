"""Names of the air gap extension and of the objects that it makes."""

from __future__ import annotations

from typing import Final

from hortus.domains.garden.extension.topic import ExtensionFacts
from hortus.engine.rbac import Permission
from hortus.kube.objects import Resource

AIRGAP: Final = "airgap"
FACTS: Final = ExtensionFacts(type=AIRGAP, seed_resource="airgap-seed", shoot_resource="airgap-shoot", webhooks=True)
API_VERSION: Final = "airgap.garden.hortus.dev/v1alpha1"
KIND: Final = "AirGapConfig"

SECRETS: Final = Resource("", "v1", "secrets", "Secret")
SHOOTS: Final = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")

RULES: Final = "hortus-airgap"
"""Name of the NetworkPolicies and of the ConfigMap in the Shoot."""
RULES_NAMESPACE: Final = "kube-system"
FIREWALL_FILE: Final = "airgap.nft"
HOSTS_FILE: Final = "hosts.toml"
HOSTS_SECRET: Final = "hortus-airgap-hosts"  # noqa: S105 - the name of an object
"""Secret in the seed with the hosts of containerd, where they have credentials."""
USER_KEYS: Final = ("username", "password")
BUNDLE_KEY: Final = "bundle.crt"
"""The only key of a Secret with the authorities of a registry, as the mirror extension of Gardener has it."""

API_PORT: Final = 443
PROXY_PORT: Final = 8443
VPN_PORT: Final = 8132
"""Ports of the seed's gateway that nodes call: kube-apiserver, unified proxy, VPN."""
DNS_PORT: Final = 53
NTP_PORT: Final = 123

PERMISSIONS: Final = (Permission("", (SECRETS.plural,), ("get",), "reads authorities and credentials of a registry"),)
"""On the seed, beyond those of the frame."""
