"""The objects of the watcher in a managed cluster.

They are those of Kyma's lifecycle-manager, field by field, so that a cluster that it has set up stays as it is
(kyma-project/lifecycle-manager, `skr-webhook/resources.yaml`). The agent of Hortus gets a folder, probes and two
variables on top.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.modules.names import GROUP, MANAGED_BY_KYMA, WEBHOOK_SECRET, Label
from hortus.domains.modules.types import Watcher
from hortus.domains.modules.watching.settings import AgentImage
from hortus.engine import metadata_of
from hortus.engine.remote import SECRETS
from hortus.kube.objects import Object, Resource

NAME: Final = "skr-webhook"
SERVICES: Final = Resource("", "v1", "services", "Service")
PODS: Final = Resource("", "v1", "pods", "Pod")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
NETWORK_POLICIES: Final = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
WEBHOOK_CONFIGURATIONS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
CONTRACT: Final = "v2"
_APP: Final = {"app": NAME}
_PRIORITY: Final = "skr-webhook-priority"
_CERTIFICATES: Final = "/app/etc/ssl"
_BUFFER: Final = "/app/var/buffer"


class Placed(NamedTuple):
    """An object and its resource."""

    resource: Resource
    object: Object

    @property
    def name(self) -> str:
        return metadata_of(self.object).name

    @property
    def namespace(self) -> str:
        return metadata_of(self.object).namespace


class Material(msgspec.Struct, frozen=True):
    """The certificate of an agent, PEM."""

    certificate: bytes
    key: bytes
    authorities: bytes
    """The bundle that verifies the control plane, and this certificate."""


class AgentFacts(msgspec.Struct, frozen=True):
    """All that differs between the agents of two clusters."""

    namespace: str
    image: AgentImage
    address: str
    """Host and port of the control plane's listener."""
    restart_trigger: str
    """Version of the certificate: the pod is replaced with it."""
    runtime_id: str = ""
    """The sender that events name."""


def resources(facts: AgentFacts, material: Material, watchers: Iterable[Watcher]) -> list[Placed]:
    """All objects, in the order in which they are applied: the configuration, which makes others wait, is last."""
    placed = [
        Placed(SECRETS, _secret(material)),
        Placed(SERVICES, _service(NAME, 443, "watcher-port", "webhook")),
        Placed(SERVICES, _service(f"{NAME}-metrics", 2112, "metrics-port", "http-metrics")),
        Placed(PRIORITY_CLASSES, _priority_class()),
        *(Placed(NETWORK_POLICIES, policy) for policy in _network_policies()),
        Placed(DEPLOYMENTS, _deployment(facts)),
        Placed(WEBHOOK_CONFIGURATIONS, configuration(watchers, facts.namespace, material.authorities)),
    ]
    return [Placed(one.resource, _marked(one, facts.namespace)) for one in placed]


def identities(namespace: str) -> list[tuple[Resource, str, str]]:
    """Resource, namespace and name of all objects, in the order in which they are deleted."""
    return [
        (WEBHOOK_CONFIGURATIONS, "", NAME),
        (DEPLOYMENTS, namespace, NAME),
        *((NETWORK_POLICIES, namespace, name) for name in _POLICIES),
        (SERVICES, namespace, NAME),
        (SERVICES, namespace, f"{NAME}-metrics"),
        (PRIORITY_CLASSES, "", _PRIORITY),
        (SECRETS, namespace, WEBHOOK_SECRET),
    ]


def manager_of(watcher: Watcher) -> str:
    """The name of the controller that a Watcher reports to; empty where it names none."""
    assert watcher.spec is not None, "a Watcher without a spec reports to nobody"
    return watcher.spec.manager or watcher.metadata.labels.get(Label.MANAGED_BY, "")


def configuration(watchers: Iterable[Watcher], namespace: str, authorities: bytes) -> Object:
    """The webhook configuration, with one webhook for each Watcher."""
    bundle = base64.b64encode(authorities).decode()
    chosen = sorted((one for one in watchers if one.spec is not None), key=_webhook_name)
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [_webhook(watcher, namespace, bundle) for watcher in chosen],
    }


def _webhook_name(watcher: Watcher) -> str:
    return f"{watcher.metadata.namespace}.{watcher.metadata.name}.{GROUP}"


def _webhook(watcher: Watcher, namespace: str, bundle: str) -> Object:
    spec = watcher.spec
    assert spec is not None, "only Watchers with a spec are chosen"
    watched = spec.resource_to_watch
    return {
        "name": _webhook_name(watcher),
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "caBundle": bundle,
            "service": {"name": NAME, "namespace": namespace, "path": f"/validate/{manager_of(watcher)}"},
        },
        "rules": [
            {
                "apiGroups": [watched.group],
                "apiVersions": [watched.version],
                "resources": [f"{watched.resource}/status" if spec.field == "status" else watched.resource],
                "operations": ["CREATE", "UPDATE", "DELETE"],
            }
        ],
        "objectSelector": {"matchLabels": dict(spec.labels_to_watch)},
        "failurePolicy": "Ignore",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 15,
    }


def _marked(placed: Placed, namespace: str) -> Object:
    found = metadata_of(placed.object)
    metadata: Object = {"name": found.name, "labels": {**found.labels, Label.MANAGED_BY: MANAGED_BY_KYMA}}
    if placed.resource.namespaced:
        metadata["namespace"] = namespace
    return {**placed.object, "metadata": metadata}


def _secret(material: Material) -> Object:
    values = {"ca.crt": material.authorities, "tls.crt": material.certificate, "tls.key": material.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": WEBHOOK_SECRET},
        "data": {name: base64.b64encode(value).decode() for name, value in values.items()},
    }


def _service(name: str, port: int, target: str, title: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": _APP, "ports": [{"port": port, "targetPort": target, "name": title}]},
    }


def _priority_class() -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": _PRIORITY},
        "value": 1_000_000_000,
        "globalDefault": False,
        "description": "This priority class is used for skr-webhook to ensure reconciliation, even with high workload.",
    }


def _deployment(facts: AgentFacts) -> Object:
    labels = {**_APP, Label.POD_RESTART_TRIGGER: facts.restart_trigger, "sidecar.istio.io/inject": "false"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "labels": _APP},
        "spec": {
            "replicas": facts.image.replicas,
            "selector": {"matchLabels": _APP},
            "template": {"metadata": {"labels": labels}, "spec": _pod(facts)},
        },
    }


def _pod(facts: AgentFacts) -> Object:
    keys = ("tls.key", "tls.crt", "ca.crt")
    volumes: list[Object] = [
        {
            "name": "ssl",
            "secret": {"secretName": WEBHOOK_SECRET, "items": [{"key": key, "path": key} for key in keys]},
        }
    ]
    pod: Object = {
        "containers": [_container(facts)],
        "volumes": volumes,
        "priorityClassName": _PRIORITY,
        "securityContext": {
            "runAsUser": 10001,
            "runAsGroup": 30001,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            # The group of the buffer's folder.
            **({"fsGroup": 30001} if facts.image.is_hortus else {}),
        },
    }
    if facts.image.is_hortus:
        volumes.append({"name": "buffer", "emptyDir": {"sizeLimit": "16Mi"}})
    if facts.image.pull_secret:
        pod["imagePullSecrets"] = [{"name": facts.image.pull_secret}]
    return pod


def _container(facts: AgentFacts) -> Object:
    image = facts.image
    mounts: list[Object] = [{"name": "ssl", "mountPath": _CERTIFICATES}]
    container: Object = {
        "name": "server",
        "env": _environment(facts),
        "image": image.reference,
        "imagePullPolicy": "Always",
        "volumeMounts": mounts,
        "resources": {
            "requests": {"memory": "20Mi", "cpu": "0.01"},
            "limits": {"memory": image.memory, "cpu": image.cpu},
        },
        "securityContext": {
            "privileged": False,
            "allowPrivilegeEscalation": False,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "ports": [
            {"containerPort": 8443, "name": "watcher-port"},
            {"containerPort": 2112, "name": "metrics-port"},
        ],
    }
    if image.is_hortus:
        container["command"] = ["hortus-watcher-agent"]
        mounts.append({"name": "buffer", "mountPath": _BUFFER})
        container["livenessProbe"] = _probe("/healthz")
        container["readinessProbe"] = _probe("/readyz")
    return container


def _environment(facts: AgentFacts) -> list[Object]:
    values = {
        "WEBHOOK_PORT": "8443",
        "METRICS_PORT": "2112",
        "TLS_KEY": f"{_CERTIFICATES}/tls.key",
        "TLS_CERT": f"{_CERTIFICATES}/tls.crt",
        "CA_CERT": f"{_CERTIFICATES}/ca.crt",
        "TLS_CALLBACK": "true",
        "KCP_CONTRACT": CONTRACT,
        "KCP_ADDR": facts.address,
    }
    if facts.image.godebug:
        values["GODEBUG"] = facts.image.godebug
    if facts.image.is_hortus:
        values |= {"BUFFER_DIR": _BUFFER, "RUNTIME_ID": facts.runtime_id}
    pod_name = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    return [pod_name, *({"name": name, "value": value} for name, value in values.items())]


def _probe(path: str) -> Object:
    return {"httpGet": {"path": path, "port": "metrics-port"}, "periodSeconds": 10, "failureThreshold": 6}


_POLICIES: Final = tuple(
    f"kyma-project.io--{name}"
    for name in ("seed-to-watcher", "watcher-to-apiserver", "metrics-to-watcher", "watcher-to-dns")
)


def _network_policies() -> list[Object]:
    seed = _pods("vpn-shoot", "app", namespace={"gardener.cloud/purpose": "kube-system"})
    dns: list[Object] = [
        {"ipBlock": {"cidr": "0.0.0.0/0"}},
        *(
            _pods(name, "k8s-app", namespace={"kubernetes.io/metadata.name": "kube-system"})
            for name in ("node-local-dns", "kube-dns")
        ),
    ]
    rules: list[tuple[str, list[Object]]] = [
        ("Ingress", [{"from": [seed]}]),
        ("Egress", [{"ports": [_tcp(443)]}]),
        ("Ingress", [{"ports": [_tcp(2112)]}]),
        ("Egress", [{"ports": [_udp(53), _tcp(53)], "to": dns}, {"ports": [_udp(8053), _tcp(8053)], "to": dns[-1:]}]),
    ]
    return [_policy(name, way, found) for name, (way, found) in zip(_POLICIES, rules, strict=True)]


def _policy(name: str, way: str, rules: list[Object]) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "labels": _APP},
        "spec": {way.lower(): rules, "podSelector": {"matchLabels": _APP}, "policyTypes": [way]},
    }


def _pods(name: str, label: str, *, namespace: dict[str, str]) -> Object:
    return {"namespaceSelector": {"matchLabels": namespace}, "podSelector": {"matchLabels": {label: name}}}


def _tcp(port: int) -> Object:
    return {"port": port, "protocol": "TCP"}


def _udp(port: int) -> Object:
    return {"port": port, "protocol": "UDP"}
