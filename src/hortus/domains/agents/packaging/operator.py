"""The objects of the operator. Names and labels are those of the Go operator, so that it is replaced in place."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hortus import __version__
from hortus.domains.agents import rbac
from hortus.domains.agents.names import OPERATOR_LEASE
from hortus.engine.rbac import EVENTS, LEASES, Permission, policy_rules
from hortus.kube.objects import Object

NAMESPACE: Final = "instana-agent"
ACCOUNT: Final = "instana-agent-operator"
DEPLOYMENT: Final = "instana-agent-controller-manager"
CLUSTER_ROLE: Final = "instana-agent-clusterrole"
CLUSTER_BINDING: Final = "instana-agent-clusterrolebinding"
ROLE: Final = "leader-election-role"
BINDING: Final = "leader-election-rolebinding"
SELECTOR: Final = {"app.kubernetes.io/name": "instana-agent-operator"}
VERSION_LABEL: Final = "app.kubernetes.io/operator-version"
IMAGE: Final = f"hortus:{__version__}"
ARGUMENTS: Final = ("run", "--agents", "--leader-elect", "--watch-namespace=", "--gardener-kubeconfig-path=")
RBAC: Final = "rbac.authorization.k8s.io"
_ARCHITECTURES: Final = ("amd64", "arm64")
"""Architectures for which all libraries have wheels."""


class OperatorChoices(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that differ between a chart, a manifest and a bundle. A value may be an expression of a template."""

    namespace: str = NAMESPACE
    image: str = IMAGE
    pull_policy: str = "IfNotPresent"
    version: str = __version__
    pod_fields: dict[str, Any] = {}
    """Further fields of the pod's spec."""
    resources: Any = None
    """Resources of the container; None for the defaults."""
    replicas: Any = 1
    more_arguments: tuple[str, ...] = ()
    pod_annotations: Any = None


RESOURCES: Final[Object] = {"limits": {"memory": "600Mi"}, "requests": {"cpu": "200m", "memory": "200Mi"}}


_RIVAL: Final = Permission(
    LEASES.group,
    LEASES.resources,
    ("get", "list", "watch", "update"),
    "holds the lease of the Go operator, without which agents are not reconciled",
    names=(OPERATOR_LEASE,),
)


def operator_objects(choices: OperatorChoices) -> list[Object]:
    """The account, its roles and the Deployment, in the order in which they are applied."""
    return [account(choices), *roles(choices), deployment(choices)]


def page_objects(choices: OperatorChoices) -> list[Object]:
    """The permission to read status pages of agents (option `runtimeStatus`), which the operator has not by itself."""
    name = f"{CLUSTER_ROLE}-status-pages"
    return [
        _rbac("ClusterRole", {"name": name, "labels": dict(SELECTOR)}, rules=policy_rules(rbac.PAGES)),
        _rbac(
            "ClusterRoleBinding",
            {"name": name, "labels": dict(SELECTOR)},
            roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            subjects=[{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": choices.namespace}],
        ),
    ]


def account(choices: OperatorChoices) -> Object:
    """The ServiceAccount."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": choices.namespace, "labels": dict(SELECTOR)},
    }


def cluster_rules() -> list[Object]:
    """The rules in the whole cluster: those of the controllers, in every namespace."""
    return policy_rules((*rbac.CONTROL, *rbac.WIDE, EVENTS, _RIVAL))


def election_rules() -> list[Object]:
    """The rules in the operator's own namespace."""
    return policy_rules((LEASES, EVENTS))


def roles(choices: OperatorChoices) -> list[Object]:
    """The roles and their bindings."""
    subjects = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": choices.namespace}]
    labels = dict(SELECTOR)
    return [
        _rbac("ClusterRole", {"name": CLUSTER_ROLE, "labels": labels}, rules=cluster_rules()),
        _rbac(
            "ClusterRoleBinding",
            {"name": CLUSTER_BINDING, "labels": labels},
            roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": CLUSTER_ROLE},
            subjects=subjects,
        ),
        _rbac("Role", {"name": ROLE, "namespace": choices.namespace, "labels": labels}, rules=election_rules()),
        _rbac(
            "RoleBinding",
            {"name": BINDING, "namespace": choices.namespace, "labels": labels},
            roleRef={"apiGroup": RBAC, "kind": "Role", "name": ROLE},
            subjects=subjects,
        ),
    ]


def _rbac(kind: str, metadata: Object, **fields: Any) -> Object:
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, **fields}


def deployment(choices: OperatorChoices) -> Object:
    """The Deployment; its selector is the Go operator's, which no upgrade can change."""
    labels = {**SELECTOR, VERSION_LABEL: choices.version}
    template: Object = {"labels": labels}
    if choices.pod_annotations is not None:
        template["annotations"] = choices.pod_annotations
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT, "namespace": choices.namespace, "labels": labels},
        "spec": deployment_spec(choices, template),
    }


def deployment_spec(choices: OperatorChoices, template: Object) -> Object:
    """The spec of the Deployment, also of that in a bundle."""
    return {
        "replicas": choices.replicas,
        "selector": {"matchLabels": dict(SELECTOR)},
        "template": {"metadata": template, "spec": pod_spec(choices)},
    }


def pod_spec(choices: OperatorChoices) -> Object:
    """The pod: one container, not privileged, with a read-only file system."""
    return {
        "serviceAccountName": ACCOUNT,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        **choices.pod_fields,
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                                {"key": "kubernetes.io/arch", "operator": "In", "values": list(_ARCHITECTURES)},
                            ]
                        }
                    ]
                }
            }
        },
        "containers": [_container(choices)],
    }


def _container(choices: OperatorChoices) -> Object:
    return {
        "name": "manager",
        "image": choices.image,
        "imagePullPolicy": choices.pull_policy,
        "args": [*ARGUMENTS, *choices.more_arguments],
        "env": [
            {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
            for name, path in (("POD_NAME", "metadata.name"), ("POD_NAMESPACE", "metadata.namespace"))
        ]
        + [{"name": "OPERATOR_VERSION", "value": choices.version}],
        "ports": [{"name": "metrics", "containerPort": 8080}, {"name": "health", "containerPort": 8081}],
        "livenessProbe": _probe("/healthz", initialDelaySeconds=15, periodSeconds=20),
        "readinessProbe": _probe("/readyz", initialDelaySeconds=5, periodSeconds=10),
        "resources": RESOURCES if choices.resources is None else choices.resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _probe(path: str, **times: int) -> Object:
    return {"httpGet": {"path": path, "port": "health"}, **times}
