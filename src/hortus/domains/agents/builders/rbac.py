"""ServiceAccounts and RBAC rules of the agent's and the k8sensor's pods.

Cluster-scoped objects have no owner, and neither have the objects in kube-system: an owner in another namespace would
have the garbage collector delete them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hortus.domains.agents.builders import names
from hortus.domains.agents.builders.facts import InstanaFacts
from hortus.domains.agents.builders.metadata import AGENT, REMOTE, SENSOR, common_labels, namespaced
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.kube.objects import Object

ETCD_NAMESPACE: Final = "kube-system"
_RBAC: Final = "rbac.authorization.k8s.io"
_READ: Final = ("get", "list", "watch")


def _rule(group: str, *resources: str) -> Object:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(_READ)}


def _urls(*paths: str) -> Object:
    return {"nonResourceURLs": list(paths), "verbs": ["get"]}


_PRIVILEGED: Final[Object] = {
    "apiGroups": ["security.openshift.io"],
    "resources": ["securitycontextconstraints"],
    "resourceNames": ["privileged"],
    "verbs": ["use"],
}
_AGENT_RULES: Final = (
    _urls("/version", "/healthz", "/metrics", "/stats/summary", "/metrics/cadvisor"),
    _rule("", "nodes", "nodes/stats", "nodes/metrics", "nodes/proxy", "pods"),
    _PRIVILEGED,
)
_SENSOR_RULES: Final = (
    _urls("/version", "/healthz", "/metrics", "/metrics/*"),
    _rule("apiextensions.k8s.io", "customresourcedefinitions"),
    _rule("extensions", "deployments", "replicasets", "ingresses"),
    _rule(
        "",
        "configmaps",
        "events",
        "services",
        "endpoints",
        "namespaces",
        "nodes",
        "nodes/metrics",
        "nodes/stats",
        "nodes/proxy",
        "pods",
        "pods/log",
        "replicationcontrollers",
        "resourcequotas",
        "persistentvolumes",
        "persistentvolumeclaims",
    ),
    _rule("apps", "daemonsets", "deployments", "replicasets", "statefulsets"),
    _rule("batch", "cronjobs", "jobs"),
    _rule("discovery.k8s.io", "endpointslices"),
    _rule("networking.k8s.io", "ingresses"),
    _rule("autoscaling", "horizontalpodautoscalers"),
    _rule("apps.openshift.io", "deploymentconfigs"),
    _PRIVILEGED,
)
_ETCD_RULES: Final = (_rule("", "services", "endpoints"),)


def agent_access(agent: InstanaAgent, facts: InstanaFacts) -> list[Object]:
    """ClusterRole and binding of the agent, named like its ServiceAccount, and the account where it is created."""
    account = names.account(agent)
    labels = common_labels(agent, AGENT, facts.operator_version)
    found = _cluster_access(account, account, agent.metadata.namespace, labels, _AGENT_RULES)
    if agent.spec.service_account.create:
        found.append(_account(agent, account, labels, agent.spec.service_account.annotations))
    return found


def sensor_access(agent: InstanaAgent, facts: InstanaFacts) -> list[Object]:
    """ClusterRole, Role in kube-system, their bindings and the ServiceAccount of the k8sensor."""
    name, namespace = names.sensor(agent), agent.metadata.namespace
    labels = common_labels(agent, SENSOR, facts.operator_version)
    reader = {"name": f"{name}-etcd-reader", "namespace": ETCD_NAMESPACE, "labels": dict(labels)}
    return [
        *_cluster_access(name, name, namespace, labels, _SENSOR_RULES),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": reader,
            "rules": [dict(rule) for rule in _ETCD_RULES],
        },
        _binding("Role", f"{name}-etcd-reader", reader, name, namespace),
        _account(agent, name, labels),
    ]


def remote_account(agent: InstanaAgentRemote, facts: InstanaFacts) -> Object | None:
    """The one ServiceAccount of all Remotes in a namespace; None where none is created."""
    wanted = agent.spec.service_account
    if not wanted.create:
        return None
    labels = common_labels(agent, REMOTE, facts.operator_version)
    return _account(agent, names.REMOTE_ACCOUNT, labels, wanted.annotations)


def _cluster_access(
    name: str, account: str, namespace: str, labels: dict[str, str], rules: Sequence[Object]
) -> list[Object]:
    metadata = {"name": name, "labels": dict(labels)}
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": [*map(dict, rules)]}
    return [role, _binding("ClusterRole", name, metadata, account, namespace)]


def _binding(kind: str, role: str, metadata: Object, account: str, namespace: str) -> Object:
    """The binding of a role, with the role's own metadata, to a ServiceAccount."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


def _account(
    agent: InstanaAgent | InstanaAgentRemote,
    name: str,
    labels: dict[str, str],
    annotations: dict[str, str] | None = None,
) -> Object:
    metadata = namespaced(agent, name, labels, annotations or {})
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
