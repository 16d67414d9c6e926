"""The lists that are merged item by item, and their keys, by kind: all that merging asks of a schema.

The table holds the kinds and lists that kustomize v5 has from the OpenAPI document it carries (Kubernetes 1.21);
kinds it does not know, newer built-in ones and custom resources, have their lists replaced. A caller who wants more
hands in OpenAPI v3 schemas with `x-kubernetes-patch-strategy` and `-patch-merge-key`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

Schemas = Callable[[str, str], Mapping[str, Any] | None]
"""The OpenAPI v3 schema of an apiVersion and kind, or None when it is not known."""


class Shape(NamedTuple):
    """The schema of the value at one place. `keys` are those of a merged list, empty when it holds scalars."""

    fields: Callable[[str], Shape | None]
    keys: tuple[str, ...] | None = None
    items: Callable[[], Shape | None] | None = None


_TYPES = {
    "ObjectMeta": "finalizers[] ownerReferences[uid]",
    "Conditions": "conditions[type]",
    "Container": "env[name] ports[containerPort,protocol] volumeDevices[devicePath] volumeMounts[mountPath]",
    "EphemeralContainer": "env[name] volumeDevices[devicePath] volumeMounts[mountPath]",
    "PodSpec": (
        "containers[name]:Container initContainers[name]:Container ephemeralContainers[name]:EphemeralContainer"
        " hostAliases[ip] imagePullSecrets[name] topologySpreadConstraints[topologyKey,whenUnsatisfiable] volumes[name]"
    ),
    "PodTemplate": "metadata:ObjectMeta spec:PodSpec",
    "Workload": "template:PodTemplate",
    "JobTemplate": "metadata:ObjectMeta spec:Workload",
    "CronJobSpec": "jobTemplate:JobTemplate",
    "ServiceSpec": "ports[port,protocol]",
    "NodeSpec": "podCIDRs[]",
    "NodeStatus": "addresses[type] conditions[type]",
    "PodStatus": "conditions[type] podIPs[ip]",
    "CSINodeSpec": "drivers[name]",
}

_KINDS = {
    "admissionregistration.k8s.io/v1 admissionregistration.k8s.io/v1beta1": {
        "MutatingWebhookConfiguration ValidatingWebhookConfiguration": "webhooks[name]",
    },
    "apiextensions.k8s.io/v1 apiextensions.k8s.io/v1beta1": {"CustomResourceDefinition": ""},
    "apiregistration.k8s.io/v1 apiregistration.k8s.io/v1beta1": {"APIService": "status:Conditions"},
    "apps/v1": {
        "DaemonSet Deployment ReplicaSet StatefulSet": "spec:Workload status:Conditions",
        "ControllerRevision": "",
    },
    "autoscaling/v1 autoscaling/v2beta1 autoscaling/v2beta2": {"HorizontalPodAutoscaler": ""},
    "batch/v1": {"Job": "spec:Workload status:Conditions", "CronJob": "spec:CronJobSpec"},
    "batch/v1beta1": {"CronJob": "spec:CronJobSpec"},
    "certificates.k8s.io/v1 certificates.k8s.io/v1beta1": {"CertificateSigningRequest": ""},
    "coordination.k8s.io/v1 coordination.k8s.io/v1beta1": {"Lease": ""},
    "discovery.k8s.io/v1 discovery.k8s.io/v1beta1": {"EndpointSlice": ""},
    "events.k8s.io/v1 events.k8s.io/v1beta1": {"Event": ""},
    "extensions/v1beta1": {"Ingress": ""},
    "flowcontrol.apiserver.k8s.io/v1beta1": {"FlowSchema PriorityLevelConfiguration": ""},
    "networking.k8s.io/v1": {"Ingress IngressClass NetworkPolicy": ""},
    "networking.k8s.io/v1beta1": {"Ingress IngressClass": ""},
    "node.k8s.io/v1 node.k8s.io/v1beta1": {"RuntimeClass": ""},
    "policy/v1 policy/v1beta1": {"PodDisruptionBudget": "status:Conditions"},
    "rbac.authorization.k8s.io/v1 rbac.authorization.k8s.io/v1beta1": {
        "ClusterRole ClusterRoleBinding Role RoleBinding": "",
    },
    "scheduling.k8s.io/v1 scheduling.k8s.io/v1beta1": {"PriorityClass": ""},
    "storage.k8s.io/v1 storage.k8s.io/v1beta1": {
        "CSIDriver StorageClass VolumeAttachment": "",
        "CSINode": "spec:CSINodeSpec",
    },
    "storage.k8s.io/v1beta1": {"CSIStorageCapacity": ""},
    "v1": {
        "ConfigMap Endpoints Event LimitRange PersistentVolume ResourceQuota Secret": "",
        "ComponentStatus": "conditions[type]",
        "Namespace PersistentVolumeClaim": "status:Conditions",
        "Node": "spec:NodeSpec status:NodeStatus",
        "Pod": "spec:PodSpec status:PodStatus",
        "PodTemplate": "template:PodTemplate",
        "ReplicationController": "spec:Workload status:Conditions",
        "Service": "spec:ServiceSpec status:Conditions",
        "ServiceAccount": "secrets[name]",
    },
}

_FIELD = re.compile(r"(\w+)(?:\[([\w,]*)\])?(?::(\w+))?")


def _table() -> dict[tuple[str, str], str]:
    return {
        (version, kind): fields
        for versions, kinds in _KINDS.items()
        for version in versions.split()
        for names, fields in kinds.items()
        for kind in names.split()
    }


_BY_KIND = _table()


def shape_of_kind(api_version: str, kind: str, schemas: Schemas | None) -> Shape | None:
    """The shape of a whole object, or None for a kind that nobody knows."""
    schema = schemas(api_version, kind) if schemas is not None else None
    if schema is not None:
        return _of_schema(schema)
    fields = _BY_KIND.get((api_version, kind))
    return None if fields is None else _of_fields(f"metadata:ObjectMeta {fields}")


@cache
def _of_fields(fields: str) -> Shape:
    known: dict[str, Shape] = {}
    for part in fields.split():
        found = _FIELD.fullmatch(part)
        if found is None:
            raise ValueError(f"the table of shapes holds {part!r}")
        name, keys, kind = found.groups()
        inner = _TYPES[kind] if kind else ""
        if keys is None:
            known[name] = _of_fields(inner)
        else:
            known[name] = _listed(tuple(filter(None, keys.split(","))), inner)
    return Shape(known.get)


def _listed(keys: tuple[str, ...], inner: str) -> Shape:
    return Shape(lambda name: None, keys, lambda: _of_fields(inner))


def _of_schema(schema: Mapping[str, Any]) -> Shape:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    items = schema.get("items")

    def field(name: str) -> Shape | None:
        inner = properties.get(name, additional if isinstance(additional, Mapping) else None)
        return None if inner is None else _of_schema(inner)

    return Shape(field, _keys(schema), (lambda: _of_schema(items)) if isinstance(items, Mapping) else None)


def _keys(schema: Mapping[str, Any]) -> tuple[str, ...] | None:
    if "merge" not in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
        return None
    listed = schema.get("x-kubernetes-list-map-keys")
    if listed:
        return tuple(listed)
    key = schema.get("x-kubernetes-patch-merge-key")
    return (key,) if key else ()
