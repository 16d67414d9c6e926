"""Fields that objects of a kind need besides the required ones, to be stored."""

from __future__ import annotations

from typing import Any

_LABELS = {"app": "a"}
_SELECTOR = {"matchLabels": _LABELS}
_POD: dict[str, Any] = {"containers": [{"name": "a", "image": "a"}]}
_TEMPLATE: dict[str, Any] = {"metadata": {"labels": _LABELS}, "spec": _POD}
_JOB: dict[str, Any] = {"template": {"spec": _POD | {"restartPolicy": "Never"}}}
_WORKLOAD: dict[str, Any] = {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}
_SCALED: dict[str, Any] = {
    "maxReplicas": 1,
    "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"},
}
_ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
_USER = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "a"}
_BOUND: dict[str, Any] = {"roleRef": _ROLE, "subjects": [_USER]}
_VERSION: dict[str, Any] = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": {"type": "object"}},
}

SPECS: dict[str, dict[str, Any]] = {
    "LimitRange": {"spec": {"limits": [{"type": "Container"}]}},
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "PersistentVolume": {
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}}
    },
    "Pod": {"spec": _POD},
    "PodTemplate": {"template": _TEMPLATE},
    "ReplicationController": {"spec": {"selector": _LABELS, "template": _TEMPLATE}},
    "Service": {"spec": {"ports": [{"name": "a0", "port": 80}]}},
    "DaemonSet": _WORKLOAD,
    "Deployment": _WORKLOAD,
    "ReplicaSet": _WORKLOAD,
    "StatefulSet": {"spec": _WORKLOAD["spec"] | {"serviceName": "a"}},
    "Job": {"spec": _JOB},
    "CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": _JOB}}},
    "IngressClass": {"spec": {"controller": "a.b/c"}},
    "Ingress": {"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}},
    "HorizontalPodAutoscaler": {"spec": _SCALED},
    "ClusterRoleBinding": _BOUND,
    "RoleBinding": _BOUND,
    "ValidatingAdmissionPolicy": {
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": ["a.b"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["as"]}
                ]
            },
            "validations": [{"expression": "true"}],
        }
    },
    "ValidatingAdmissionPolicyBinding": {"spec": {"policyName": "a", "validationActions": ["Deny"]}},
    "CustomResourceDefinition": {
        "spec": {
            "group": "b.example.com",
            "scope": "Cluster",
            "names": {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"},
            "versions": [_VERSION],
        }
    },
    "SubjectAccessReview": {"spec": {"user": "a", "resourceAttributes": {"verb": "get", "resource": "pods"}}},
    "SelfSubjectAccessReview": {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
    "LocalSubjectAccessReview": {
        "spec": {"user": "a", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}
    },
    "SelfSubjectRulesReview": {"spec": {"namespace": "default"}},
    "TokenReview": {"spec": {"token": "a"}},
}
"""By kind: the fields of objects that grow."""

METADATA: dict[str, dict[str, Any]] = {
    "CustomResourceDefinition": {"name": "as.b.example.com"},
    "APIService": {"name": "v1.a.example.com"},
}
"""By kind: the metadata of those whose name follows from their content."""
