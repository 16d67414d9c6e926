"""Names of the audit extension, of the objects that it makes; most are those of the Go extension."""

from __future__ import annotations

from typing import Final

from hortus.domains.garden.extension.topic import ExtensionFacts
from hortus.engine.rbac import Permission
from hortus.kube.objects import Resource

AUDIT: Final = "audit"
_MOMENT: Final = "BeforeKubeAPIServer"
FACTS: Final = ExtensionFacts(
    type=AUDIT,
    seed_resource="extension-audit",
    shoot_resource="extension-audit-shoot",
    reconcile=_MOMENT,
    delete=_MOMENT,
    workerless=True,
    webhooks=True,
)
API_VERSION: Final = "audit.metal.extensions.gardener.cloud/v1alpha1"
KIND: Final = "AuditConfig"

SECRETS: Final = Resource("", "v1", "secrets", "Secret")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
VOLUME_CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PODS: Final = Resource("", "v1", "pods", "Pod")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")

BACKEND: Final = "audit-webhook-backend"
"""Name of the StatefulSet, its Service, its PodDisruptionBudget, and the value of their label app."""
BACKEND_LABELS: Final = {"app": BACKEND}
VOLUME: Final = "audit-data"
WEBHOOK_CONFIG: Final = "audit-webhook-config"
"""Secret with the kubeconfig of the kube-apiserver's webhook, and the volume of it."""
WEBHOOK_FILE: Final = "audit-webhook-config.yaml"
FLUENT_BIT_CONFIG: Final = "audit-fluent-bit-config"
RECEIVER_CONFIG: Final = "audit-receiver-config"
SERVING: Final = "audit-webhook-serving"
"""Secret with the certificate by which a buffer serves, and with the key of its chain."""
CERTIFICATES: Final = "audit-webhook-certificates"
"""Secret with the authorities and all certificates, which no pod mounts."""
PORT: Final = 9880
API_PORT: Final = 2020
CLIENT_NAME: Final = "kube-apiserver"
"""Common name of the certificate by which the kube-apiserver is known to a buffer."""
CHAIN_KEY: Final = "chain.key"

GATEWAY: Final = "audit-cluster-forwarding-vpn-gateway"
GATEWAY_PORT: Final = 9876
TAILER: Final = "audittailer"
TAILER_PORT: Final = 24224
TAILER_NAMESPACE: Final = "kube-system"

PERMISSIONS: Final = (
    Permission("", ("secrets", "configmaps"), ("get",), "reads credentials and outputs that configurations refer to"),
    Permission(
        "", (VOLUME_CLAIMS.plural,), ("list", "deletecollection"), "deletes the volumes of buffers with the extension"
    ),
    Permission("", (PODS.plural,), ("list", "watch"), "finds the pods of buffers, to ask for the retries of outputs"),
)
"""On the seed, beyond those of the frame."""
