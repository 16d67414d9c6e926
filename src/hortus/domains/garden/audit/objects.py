"""The objects of one buffer in the seed: pods, Service, configuration and Secrets. Pure.

Contract: metal-stack/gardener-extension-audit, pkg/controller/audit: names, ports, labels and resources are the same.
Differences: the webhook is called by HTTPS with a client certificate, and the annotations with checksums cover all that
a pod reads.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from hortus.domains.garden.audit import fluentbit, receiver
from hortus.domains.garden.audit.credentials import KEYS, with_header
from hortus.domains.garden.audit.names import (
    API_PORT,
    BACKEND,
    BACKEND_LABELS,
    CHAIN_KEY,
    FLUENT_BIT_CONFIG,
    GATEWAY,
    GATEWAY_PORT,
    PORT,
    RECEIVER_CONFIG,
    SERVING,
    VOLUME,
    WEBHOOK_CONFIG,
    WEBHOOK_FILE,
)
from hortus.domains.garden.audit.plan import FORWARDING, AuditPlan
from hortus.domains.garden.audit.settings import AuditChoices
from hortus.domains.garden.extension.certificates import ShootCertificates
from hortus.kube import yaml
from hortus.kube.kubeconfig import document
from hortus.kube.objects import Object

_CONTEXT: Final = "audit-webhook"
_ALLOWED: Final = "allowed"
_POLICY: Final = "networking.resources.gardener.cloud/"
_RESOURCES: Final = {
    "requests": {"cpu": "200m", "memory": "512Mi"},
    "limits": {"cpu": "1", "memory": "1Gi"},
}
_RUN_AS: Final = 65_532


class BufferInputs(msgspec.Struct, frozen=True, kw_only=True):
    """All that the objects follow from."""

    plan: AuditPlan
    namespace: str
    certificates: ShootCertificates
    secrets: Mapping[str, dict[str, str]]
    """Data of the Secrets of backends, by the names of these."""
    custom: Mapping[str, str] = {}
    settings: AuditChoices
    hibernated: bool = False


class DataObject(msgspec.Struct, frozen=True):
    """A Secret or ConfigMap."""

    kind: str
    name: str
    data: Mapping[str, str]
    """Values, of a Secret in base64."""

    def body(self, namespace: str, labels: Mapping[str, str] | None = None) -> Object:
        """The object."""
        metadata: Object = {"name": self.name, "namespace": namespace, **({"labels": dict(labels)} if labels else {})}
        found: Object = {"apiVersion": "v1", "kind": self.kind, "metadata": metadata, "data": dict(self.data)}
        return {**found, "type": "Opaque"} if self.kind == "Secret" else found

    @property
    def digest(self) -> str:
        """A digest of the data."""
        text = "\0".join(f"{key}\0{value}" for key, value in sorted(self.data.items()))
        return hashlib.sha256(text.encode()).hexdigest()

    def annotation(self) -> dict[str, str]:
        """The annotation of pods that are replaced when the data changes."""
        return {f"checksum/{'secret' if self.kind == 'Secret' else 'config'}-{self.name}": self.digest}


def buffer_objects(given: BufferInputs) -> tuple[Object, ...]:
    """The objects of the seed."""
    made = _receiver(given) if given.settings.is_receiver else _fluent_bit(given)
    secrets = [DataObject("Secret", secret_name(name), data) for name, data in _backend_secrets(given).items()]
    webhook = webhook_secret(given.namespace, given.certificates)
    parts = [webhook, _serving(given), made.config, *secrets]
    namespace = given.namespace
    bodies = [one.body(namespace) for one in parts]
    return (*bodies, _stateful_set(given, made, parts), _service(namespace), _budget(namespace))


def webhook_secret(namespace: str, certificates: ShootCertificates) -> DataObject:
    """The kubeconfig by which the kube-apiserver calls the buffer."""
    pair = certificates.pair("client")
    server = f"https://{BACKEND}.{namespace}.svc.cluster.local:{PORT}/audit"
    config = document(_CONTEXT, server, ca=certificates.bundle, certificate=pair.certificate, key=pair.key)
    return DataObject("Secret", WEBHOOK_CONFIG, {WEBHOOK_FILE: _encoded(yaml.dump(config).encode())})


def secret_name(backend: str) -> str:
    """The name of the Secret of a backend."""
    return f"audit-{backend}-secret"


class _Made(msgspec.Struct, frozen=True):
    """The part that differs from buffer to buffer."""

    container: Object
    config: DataObject
    annotations: dict[str, str] = {}


def _fluent_bit(given: BufferInputs) -> _Made:
    texts = fluentbit.files(given.plan, cluster=given.namespace, secrets=_keys(given), custom=given.custom)
    variables = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret_name(backend), "key": key}}}
        for backend, data in given.secrets.items()
        for name, key in (KEYS[backend].variables if backend in KEYS else {}).items()
        if key in data
    ]
    container: Object = {
        "name": "fluent-bit",
        "image": given.settings.fluent_bit_image,
        "args": ["--storage_path=/data", f"--config=/config/{fluentbit.MAIN_FILE}"],
        "readinessProbe": _probe("/api/v2/metrics/prometheus"),
        "livenessProbe": _probe("/"),
    }
    if variables:
        container["env"] = variables
    return _Made(container, DataObject("ConfigMap", FLUENT_BIT_CONFIG, texts), _scraped("/api/v2/metrics/prometheus"))


def _receiver(given: BufferInputs) -> _Made:
    text = receiver.configuration(given.plan, cluster=given.namespace, secrets=_keys(given))
    container: Object = {
        "name": "receiver",
        "image": given.settings.receiver_image,
        "args": ["garden", "audit", "serve", f"--config=/config/{receiver.CONFIG_FILE}"],
        # A full spool is no reason to take the receiver out of the Service: requests would be lost, not refused.
        "readinessProbe": _probe("/healthz"),
        "livenessProbe": _probe("/healthz"),
    }
    return _Made(
        container, DataObject("ConfigMap", RECEIVER_CONFIG, {receiver.CONFIG_FILE: text}), _scraped("/metrics")
    )


def _backend_secrets(given: BufferInputs) -> dict[str, dict[str, str]]:
    if not given.settings.is_receiver:
        return {name: data for name, data in given.secrets.items() if data}
    return {name: with_header(name, data) for name, data in given.secrets.items() if data}


def _keys(given: BufferInputs) -> dict[str, frozenset[str]]:
    return {name: frozenset(data) for name, data in _backend_secrets(given).items()}


def _serving(given: BufferInputs) -> DataObject:
    """The certificate of the buffer, the authorities of its client, and the key of the chain."""
    server = given.certificates.pair("server")
    data = {
        "tls.crt": server.certificate,
        "tls.key": server.key.reveal().encode(),
        "ca.crt": given.certificates.bundle,
    }
    if given.settings.is_receiver:
        data[CHAIN_KEY] = given.certificates.keys[CHAIN_KEY].reveal().encode()
    return DataObject("Secret", SERVING, secret_data(data))


def _stateful_set(given: BufferInputs, made: _Made, parts: Sequence[DataObject]) -> Object:
    checksums = {name: digest for one in parts for name, digest in one.annotation().items()}
    claim: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": given.plan.size}}}
    if given.plan.storage_class:
        claim["storageClassName"] = given.plan.storage_class
    template = {
        "metadata": {"labels": _pod_labels(given), "annotations": {**made.annotations, **checksums}},
        "spec": _pod(given, made),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        # The size of volumes cannot be changed in place; the pods may be made again, and keep theirs.
        "metadata": {
            "name": BACKEND,
            "namespace": given.namespace,
            "labels": BACKEND_LABELS,
            "annotations": {"resources.gardener.cloud/delete-on-invalid-update": "true"},
        },
        "spec": {
            "replicas": 0 if given.hibernated else given.plan.replicas,
            "serviceName": BACKEND,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": BACKEND_LABELS},
            "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": VOLUME}, "spec": claim}],
        },
    }


def _pod(given: BufferInputs, made: _Made) -> Object:
    volumes: list[Object] = [
        {"name": "config", "configMap": {"name": made.config.name}},
        {"name": "certs", "secret": {"secretName": SERVING}},
    ]
    mounts: list[Object] = [
        {"name": "config", "mountPath": "/config"},
        {"name": "certs", "mountPath": fluentbit.SERVING_FOLDER, "readOnly": True},
        {"name": VOLUME, "mountPath": "/data"},
    ]
    for name, data in _backend_secrets(given).items():
        keys = sorted(data) if given.settings.is_receiver else _files(name, data)
        if not keys:
            continue
        items = [{"key": key, "path": key} for key in keys]
        volumes.append({"name": f"{name}-secret", "secret": {"secretName": secret_name(name), "items": items}})
        place = receiver.secret_folder(name) if given.settings.is_receiver else fluentbit.certificates_folder(name)
        mounts.append({"name": f"{name}-secret", "mountPath": place, "readOnly": True})
    container: Object = {
        **made.container,
        "ports": [{"name": "http", "containerPort": PORT}, {"name": "api", "containerPort": API_PORT}],
        "resources": _RESOURCES,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": mounts,
    }
    return {
        "automountServiceAccountToken": False,
        "priorityClassName": "gardener-system-500",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _RUN_AS,
            "fsGroup": _RUN_AS,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": _APART,
        "containers": [container],
        "volumes": volumes,
    }


_APART: Final[Object] = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "podAffinityTerm": {
                    "labelSelector": {"matchLabels": BACKEND_LABELS},
                    "topologyKey": "kubernetes.io/hostname",
                },
            }
        ]
    }
}


def _files(backend: str, data: Mapping[str, str]) -> list[str]:
    known = KEYS[backend].files if backend in KEYS else tuple(sorted(data))
    return [key for key in known if key in data]


def _pod_labels(given: BufferInputs) -> dict[str, str]:
    found = {
        **BACKEND_LABELS,
        "networking.gardener.cloud/from-prometheus": _ALLOWED,
        "networking.gardener.cloud/to-dns": _ALLOWED,
        "networking.gardener.cloud/to-private-networks": _ALLOWED,
        "networking.gardener.cloud/to-public-networks": _ALLOWED,
        "networking.gardener.cloud/from-shoot-apiserver": _ALLOWED,
    }
    if given.plan.has(FORWARDING):
        found[f"{_POLICY}to-{GATEWAY}-tcp-{GATEWAY_PORT}"] = _ALLOWED
    return found


def _scraped(path: str) -> dict[str, str]:
    return {"prometheus.io/scrape": "true", "prometheus.io/port": str(API_PORT), "prometheus.io/path": path}


def _service(namespace: str) -> Object:
    ports = [{"name": name, "port": port, "protocol": "TCP"} for name, port in (("http", PORT), ("api", API_PORT))]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": BACKEND,
            "namespace": namespace,
            "annotations": {
                f"{_POLICY}pod-label-selector-namespace-alias": "all-shoots",
                f"{_POLICY}namespace-selectors": '[{"matchLabels":{"gardener.cloud/role":"extension"}}]',
            },
        },
        "spec": {"selector": BACKEND_LABELS, "ports": ports},
    }


def _budget(namespace: str) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": BACKEND, "namespace": namespace, "labels": BACKEND_LABELS},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": BACKEND_LABELS}},
    }


def _probe(path: str) -> Object:
    return {"httpGet": {"path": path, "port": API_PORT}}


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


def secret_data(values: Mapping[str, bytes]) -> dict[str, str]:
    """Values as they stand in the data of a Secret."""
    return {key: _encoded(value) for key, value in values.items()}


__all__ = ["BufferInputs", "DataObject", "buffer_objects", "secret_data", "secret_name", "webhook_secret"]
