"""The objects of the backend clusterForwarding: a gateway in the seed, and a pod of fluentd in the Shoot. Pure.

Contract: metal-stack/gardener-extension-audit, pkg/controller/audit/backend. It is meant for demonstrations.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.garden.audit.names import (
    BACKEND,
    GATEWAY,
    GATEWAY_PORT,
    TAILER,
    TAILER_NAMESPACE,
    TAILER_PORT,
)
from hortus.domains.garden.audit.objects import DataObject, secret_data
from hortus.domains.garden.audit.settings import AuditChoices
from hortus.domains.garden.extension.certificates import PairUse, ShootCertificates, service_names
from hortus.domains.garden.kinds.seedcluster import SeedCluster
from hortus.kube.objects import Object

ACCESS: Final = f"shoot-access-{GATEWAY}"
"""Secret with the token of the gateway in the Shoot, which gardener-resource-manager keeps."""
SERVER: Final = "audittailer-server"
_GENERIC: Final = "generic-token-kubeconfig"
_GENERIC_NOTE: Final = "generic-token-kubeconfig.secret.gardener.cloud/name"
"""Annotation of the Cluster with the name of the Secret that has a kubeconfig without a token."""
_ACCESS_FOLDER: Final = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
_LABELS: Final = {"app": TAILER}
_GATEWAY_LABELS: Final = {"app": GATEWAY}
_ALLOWED: Final = "allowed"
_FLUENTD: Final = """\
<source>
  @type forward
  port 24224
  bind 0.0.0.0
  <transport tls>
    ca_path /fluentd/etc/ssl/ca.crt
    cert_path /fluentd/etc/ssl/tls.crt
    private_key_path /fluentd/etc/ssl/tls.key
    client_cert_auth true
  </transport>
</source>
<match **>
  @type stdout
  <buffer>
    @type file
    path /fluentbuffer/auditlog-*
    chunk_limit_size 256Mb
  </buffer>
  <format>
    @type json
  </format>
</match>
"""


TAILER_USES: Final = {
    "tailer-server": PairUse(common_name=TAILER, names=service_names(TAILER, TAILER_NAMESPACE)),
    "tailer-client": PairUse(common_name=TAILER),
}


def tailer_client(certificates: ShootCertificates) -> dict[str, str]:
    """The data of the Secret by which the buffer is known to the pod in the Shoot."""
    return secret_data(_files(certificates, "tailer-client"))


def seed_objects(cluster: SeedCluster, settings: AuditChoices, *, hibernated: bool) -> tuple[Object, ...]:
    """The gateway, which carries connections into the Shoot's network."""
    namespace = cluster.technical_id
    spec: Object = {
        "replicas": 0 if hibernated else 1,
        "selector": {"matchLabels": _GATEWAY_LABELS},
        "template": {"metadata": {"labels": _gateway_labels()}, "spec": _gateway_pod(cluster, settings)},
    }
    access = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": ACCESS,
            "namespace": namespace,
            "labels": {
                "resources.gardener.cloud/class": "shoot",
                "resources.gardener.cloud/purpose": "token-requestor",
            },
            "annotations": {
                "serviceaccount.resources.gardener.cloud/name": GATEWAY,
                "serviceaccount.resources.gardener.cloud/namespace": TAILER_NAMESPACE,
            },
        },
        "type": "Opaque",
    }
    port = {"port": GATEWAY_PORT, "protocol": "TCP"}
    return (
        access,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _at(GATEWAY, namespace), "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": _at(GATEWAY, namespace),
            "spec": {"selector": _GATEWAY_LABELS, "ports": [port]},
        },
    )


def shoot_objects(certificates: ShootCertificates, settings: AuditChoices) -> tuple[Object, ...]:
    """The pod that writes events to its log, with the permission of the gateway to find it."""
    server = DataObject("Secret", SERVER, secret_data(_files(certificates, "tailer-server")))
    config = DataObject("ConfigMap", f"{TAILER}-config", {"fluent.conf": _FLUENTD})
    sums = {**server.annotation(), **config.annotation()}
    spec: Object = {
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS, "annotations": sums}, "spec": _tailer_pod(settings)},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _at(TAILER, TAILER_NAMESPACE, _LABELS),
        "spec": spec,
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _at(TAILER, TAILER_NAMESPACE, _LABELS),
        "spec": {"selector": _LABELS, "ports": [{"port": TAILER_PORT, "targetPort": TAILER_PORT}]},
    }
    data = (server.body(TAILER_NAMESPACE), config.body(TAILER_NAMESPACE, _LABELS))
    return (*data, deployment, service, *_permissions())


def _permissions() -> tuple[Object, Object]:
    verbs = {"apiGroups": [""], "verbs": ["get", "list"]}
    # There, in kube-system, other Secrets are none of the gateway's.
    rules = [{**verbs, "resources": ["services"]}, {**verbs, "resources": ["secrets"], "resourceNames": [SERVER]}]
    group = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{group}/v1",
        "kind": "Role",
        "metadata": _at(TAILER, TAILER_NAMESPACE),
        "rules": rules,
    }
    subject = {"kind": "ServiceAccount", "name": GATEWAY, "namespace": TAILER_NAMESPACE}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": _at(TAILER, TAILER_NAMESPACE),
        "roleRef": {"apiGroup": group, "kind": "Role", "name": TAILER},
        "subjects": [subject],
    }
    return role, binding


def _gateway_labels() -> dict[str, str]:
    words = (
        "networking.gardener.cloud/to-dns",
        "networking.gardener.cloud/to-shoot-apiserver",
        "networking.gardener.cloud/to-private-networks",
        "networking.gardener.cloud/to-public-networks",
        "networking.gardener.cloud/to-runtime-apiserver",
        "networking.resources.gardener.cloud/to-kube-apiserver-tcp-443",
        "networking.resources.gardener.cloud/to-vpn-seed-server-tcp-9443",
        f"networking.resources.gardener.cloud/from-{BACKEND}-tcp-{GATEWAY_PORT}",
    )
    return {**_GATEWAY_LABELS, **dict.fromkeys(words, _ALLOWED)}


def _gateway_pod(cluster: SeedCluster, settings: AuditChoices) -> Object:
    generic = cluster.metadata.annotations.get(_GENERIC_NOTE, _GENERIC)
    variables = {
        "GATEWAY_SHOOT_KUBECONFIG": f"{_ACCESS_FOLDER}/kubeconfig",
        "GATEWAY_SEED_NAMESPACE": cluster.technical_id,
        "GATEWAY_NAMESPACE": TAILER_NAMESPACE,
        "GATEWAY_SERVICE_NAME": TAILER,
    }
    sources = [_source(generic, "kubeconfig"), _source(ACCESS, "token")]
    container: Object = {
        "name": "gardener-vpn-gateway",
        "image": settings.gateway_image,
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "volumeMounts": [{"name": "kubeconfig", "mountPath": _ACCESS_FOLDER, "readOnly": True}],
    }
    return {
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [{"name": "kubeconfig", "projected": {"defaultMode": 420, "sources": sources}}],
    }


def _source(secret: str, key: str) -> Object:
    return {"secret": {"name": secret, "items": [{"key": key, "path": key}], "optional": False}}


def _tailer_pod(settings: AuditChoices) -> Object:
    container: Object = {
        "name": TAILER,
        "image": settings.tailer_image,
        "imagePullPolicy": "IfNotPresent",
        # The factor holds down the memory of Ruby, as fluentd's documentation on tuning says.
        "env": [{"name": "RUBY_GC_HEAP_OLDOBJECT_LIMIT_FACTOR", "value": "1.2"}],
        "ports": [{"containerPort": TAILER_PORT, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": "100m", "memory": "200Mi"},
            "limits": {"cpu": "150m", "memory": "512Mi"},
        },
        "securityContext": {
            "runAsUser": 65_534,
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "seccompProfile": {"type": "RuntimeDefault"},
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "fluentd-config", "mountPath": "/fluentd/etc"},
            {"name": "fluentd-certs", "mountPath": "/fluentd/etc/ssl"},
            {"name": "fluentbuffer", "mountPath": "/fluentbuffer"},
        ],
    }
    return {
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [
            {"name": "fluentd-config", "configMap": {"name": f"{TAILER}-config"}},
            {"name": "fluentd-certs", "secret": {"secretName": SERVER}},
            {"name": "fluentbuffer", "emptyDir": {}},
        ],
    }


def _files(certificates: ShootCertificates, name: str) -> dict[str, bytes]:
    pair = certificates.pair(name)
    return {"ca.crt": certificates.bundle, "tls.crt": pair.certificate, "tls.key": pair.key.reveal().encode()}


def _at(name: str, namespace: str, labels: dict[str, str] | None = None) -> Object:
    return {"name": name, "namespace": namespace, **({"labels": labels} if labels else {})}
