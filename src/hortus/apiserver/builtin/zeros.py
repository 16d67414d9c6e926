"""What spec and status of built-in kinds hold when nothing is set: Go structs that are no pointers always appear.

A new object is compared with this to find what its creator owns (KEP-555), so that nobody owns the mere presence of a
Deployment's `strategy`. Taken from the types of k8s.io/api: their fields without `omitempty`, and structs within.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TEMPLATE: Mapping[str, Any] = {"metadata": {"creationTimestamp": None}, "spec": {"containers": []}}
_BALANCED: Mapping[str, Any] = {"spec": {}, "status": {"loadBalancer": {}}}

ZERO: Mapping[str, Mapping[str, Any]] = {
    "CronJob": {"spec": {"jobTemplate": {"metadata": {"creationTimestamp": None}, "spec": {"template": _TEMPLATE}}}},
    "CustomResourceDefinition": {"spec": {"names": {}, "versions": []}, "status": {"acceptedNames": {}}},
    "DaemonSet": {"spec": {"template": _TEMPLATE, "updateStrategy": {}}},
    "Deployment": {"spec": {"template": _TEMPLATE, "strategy": {}}},
    "Event": {
        **{key: {} for key in ("involvedObject", "source", "regarding", "deprecatedSource")},
        **dict.fromkeys(("eventTime", "firstTimestamp", "lastTimestamp")),
        **dict.fromkeys(("deprecatedFirstTimestamp", "deprecatedLastTimestamp")),
        "reportingComponent": "",
        "reportingInstance": "",
    },
    "HorizontalPodAutoscaler": {"spec": {"scaleTargetRef": {}}, "status": {}},
    "Ingress": _BALANCED,
    "Job": {"spec": {"template": _TEMPLATE}},
    "NetworkPolicy": {"spec": {"podSelector": {}}},
    "PersistentVolumeClaim": {"spec": {"resources": {}}, "status": {}},
    "Pod": {"spec": {"containers": []}, "status": {}},
    "PodTemplate": {"template": _TEMPLATE},
    "ReplicaSet": {"spec": {"template": _TEMPLATE}},
    "Service": _BALANCED,
    "StatefulSet": {"spec": {"template": _TEMPLATE, "updateStrategy": {}}},
    "ClusterRole": {"rules": []},
    "ClusterRoleBinding": {"roleRef": {}},
    "Role": {"rules": []},
    "RoleBinding": {"roleRef": {}},
}
