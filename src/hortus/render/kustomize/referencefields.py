"""The fields that hold names of other objects: kustomize v5's own table."""

from __future__ import annotations

from collections.abc import Iterable

from hortus.render.kustomize.documents import ConfiguredField, NameReference

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"


_PODS = {
    "Pod": "spec",
    "PodTemplate": "template/spec",
    "Deployment": "spec/template/spec",
    "ReplicaSet": "spec/template/spec",
    "DaemonSet": "spec/template/spec",
    "StatefulSet": "spec/template/spec",
    "ReplicationController": "spec/template/spec",
    "Job": "spec/template/spec",
    "CronJob": "spec/jobTemplate/spec/template/spec",
}
_DATA_KINDS = ("Pod", "PodTemplate", "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job", "CronJob")
_POD_KINDS = ("Pod", "StatefulSet", "Deployment", "ReplicationController", "CronJob", "Job", "DaemonSet")


def _data_paths(name: str, volume: str) -> list[str]:
    """Fields in which pods name a ConfigMap or Secret; `volume` is the last part in a volume."""
    containers = [
        f"{part}/{field}"
        for part in ("containers", "initContainers")
        for field in (f"env/valueFrom/{name}KeyRef/name", f"envFrom/{name}Ref/name")
    ]
    return [f"volumes/{name}/{volume}", *containers, f"volumes/projected/sources/{name}/name"]


def _in_pods(kinds: Iterable[str], paths: Iterable[str], *, pod_version: str = "") -> list[ConfiguredField]:
    paths = list(paths)
    return [
        ConfiguredField(version=pod_version if kind == "Pod" else "", kind=kind, path=f"{_PODS[kind]}/{path}")
        for kind in kinds
        for path in paths
    ]


def _plain(path: str, kind: str, group: str = "", version: str = "") -> ConfiguredField:
    return ConfiguredField(path=path, group=group, version=version, kind=kind)


def _rules(*kinds: str) -> list[ConfiguredField]:
    return [_plain("rules/resourceNames", kind) for kind in kinds]


def _ingress(annotation: str) -> ConfiguredField:
    return _plain("metadata/annotations/" + annotation.replace("/", "\\/"), "Ingress")


def _target(group: str, version: str, kind: str, fields: list[ConfiguredField]) -> NameReference:
    return NameReference(group=group, version=version, kind=kind, field_specs=tuple(fields))


_SCALED = [_plain("spec/scaleTargetRef/name", "HorizontalPodAutoscaler")]
_SECRET_PATHS = [*_data_paths("secret", "secretName"), "imagePullSecrets/name"]
NAME_REFERENCES = (
    *(_target("", "", kind, _SCALED) for kind in ("Deployment", "ReplicationController", "ReplicaSet", "StatefulSet")),
    _target(
        "",
        "v1",
        "ConfigMap",
        [
            *_in_pods(_DATA_KINDS, _data_paths("configMap", "name"), pod_version="v1"),
            _plain("spec/configSource/configMap", "Node"),
            *_rules("Role", "ClusterRole"),
            _ingress("nginx.ingress.kubernetes.io/fastcgi-params-configmap"),
        ],
    ),
    _target(
        "",
        "v1",
        "Secret",
        [
            *_in_pods(_DATA_KINDS, _SECRET_PATHS, pod_version="v1"),
            _plain("spec/tls/secretName", "Ingress"),
            _ingress("ingress.kubernetes.io/auth-secret"),
            _ingress("nginx.ingress.kubernetes.io/auth-secret"),
            _ingress("nginx.ingress.kubernetes.io/auth-tls-secret"),
            _plain("imagePullSecrets/name", "ServiceAccount"),
            *(
                _plain(f"parameters/{field}", "StorageClass")
                for field in ("secretName", "adminSecretName", "userSecretName", "secretRef")
            ),
            *_rules("Role", "ClusterRole"),
            _plain(
                "spec/template/spec/containers/env/valueFrom/secretKeyRef/name", "Service", "serving.knative.dev", "v1"
            ),
            _plain("spec/azureFile/secretName", "PersistentVolume"),
        ],
    ),
    _target(
        "",
        "v1",
        "Service",
        [
            _plain("spec/serviceName", "StatefulSet", "apps"),
            _plain("spec/rules/http/paths/backend/serviceName", "Ingress"),
            _plain("spec/backend/serviceName", "Ingress"),
            _plain("spec/rules/http/paths/backend/service/name", "Ingress"),
            _plain("spec/defaultBackend/service/name", "Ingress"),
            _plain("spec/service/name", "APIService", "apiregistration.k8s.io"),
            _plain("webhooks/clientConfig/service", "ValidatingWebhookConfiguration", _ADMISSION),
            _plain("webhooks/clientConfig/service", "MutatingWebhookConfiguration", _ADMISSION),
        ],
    ),
    _target(_RBAC, "", "Role", [_plain("roleRef/name", "RoleBinding", _RBAC)]),
    _target(
        _RBAC,
        "",
        "ClusterRole",
        [_plain("roleRef/name", "RoleBinding", _RBAC), _plain("roleRef/name", "ClusterRoleBinding", _RBAC)],
    ),
    _target(
        "",
        "v1",
        "ServiceAccount",
        [
            _plain("subjects", "RoleBinding", _RBAC),
            _plain("subjects", "ClusterRoleBinding", _RBAC),
            *_in_pods(_POD_KINDS, ["serviceAccountName"]),
        ],
    ),
    _target("", "v1", "PersistentVolumeClaim", _in_pods(_POD_KINDS, ["volumes/persistentVolumeClaim/claimName"])),
    _target(
        "",
        "v1",
        "PersistentVolume",
        [_plain("spec/volumeName", "PersistentVolumeClaim"), *_rules("ClusterRole")],
    ),
    _target(
        "storage.k8s.io",
        "v1",
        "StorageClass",
        [
            _plain("spec/storageClassName", "PersistentVolume"),
            _plain("spec/storageClassName", "PersistentVolumeClaim"),
            _plain("spec/volumeClaimTemplates/spec/storageClassName", "StatefulSet"),
        ],
    ),
    _target("scheduling.k8s.io", "v1", "PriorityClass", _in_pods(_POD_KINDS, ["priorityClassName"])),
    _target(
        _ADMISSION,
        "",
        "ValidatingAdmissionPolicy",
        [_plain("spec/policyName", "ValidatingAdmissionPolicyBinding", _ADMISSION)],
    ),
)
