"""The RBAC rules of this domain on the cluster whose agents it runs; the roles of the chart come from here.

A controller can grant only what it holds itself (Kubernetes docs, "Privilege escalation prevention"), so that the rules
that agents and sensors get are among its own. It has neither `escalate` nor `*`.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.agents.names import CERTIFICATES, GROUP
from hortus.domains.agents.types import (
    AGENT_CONFIGURATIONS,
    AGENT_PLACEMENTS,
    INSTANA_AGENTS,
    INSTANA_AGENTS_REMOTE,
)
from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.engine.deputies import IMPERSONATES, REVIEWS
from hortus.engine.rbac import Permission

_READ: Final = ("get", "list", "watch")
_KEEP: Final = (*_READ, "create", "patch", "delete")
_PLURALS: Final = (INSTANA_AGENTS.plural, INSTANA_AGENTS_REMOTE.plural)

CONTROL: Final = (
    Permission(GROUP, _PLURALS, (*_READ, "patch"), "follows agents and holds their deletion"),
    Permission(GROUP, tuple(f"{name}/status" for name in _PLURALS), ("patch",), "reports the state of agents"),
    Permission("", ("configmaps", "secrets", "serviceaccounts", "services"), _KEEP, "keeps the objects of agents"),
    Permission("apps", ("daemonsets", "deployments"), _KEEP, "keeps the workloads of agents"),
    Permission("policy", ("poddisruptionbudgets",), _KEEP, "keeps replicas of the sensor"),
    Permission("", ("pods",), ("list", "patch"), "hands the pods of agents of 2.0 to their new DaemonSet"),
    Permission("networking.k8s.io", ("networkpolicies",), _KEEP, "shields the sensor, where options ask for it"),
    Permission(
        CERTIFICATES.group,
        (CERTIFICATES.plural,),
        ("get", "create", "patch", "delete"),
        "has cert-manager issue certificates of agents, where options ask for it",
    ),
)
"""In the watched namespace."""

PAGES: Final = (
    Permission("", ("pods/proxy",), ("get",), "reads the status pages of agents, where options ask for it"),
)
"""For the option `runtimeStatus` alone: a page of any pod can be read with it, so no role has it by itself."""

_ROLES: Final = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
_WORKLOAD: Final = (
    Permission("", (), ("get",), "is granted to agents", urls=("/healthz", "/stats/summary", "/metrics/cadvisor")),
    Permission("", (), ("get",), "is granted to agents and sensors", urls=("/version", "/metrics", "/metrics/*")),
    Permission(
        "",
        ("nodes", "nodes/metrics", "nodes/proxy", "nodes/stats", "pods"),
        _READ,
        "is granted to agents and sensors",
    ),
    Permission(
        "",
        (
            "configmaps",
            "endpoints",
            "events",
            "namespaces",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods/log",
            "replicationcontrollers",
            "resourcequotas",
            "services",
        ),
        _READ,
        "is granted to sensors",
    ),
    Permission("apiextensions.k8s.io", ("customresourcedefinitions",), _READ, "is granted to sensors"),
    Permission("apps", ("daemonsets", "deployments", "replicasets", "statefulsets"), _READ, "is granted to sensors"),
    Permission("apps.openshift.io", ("deploymentconfigs",), _READ, "is granted to sensors"),
    Permission("autoscaling", ("horizontalpodautoscalers",), _READ, "is granted to sensors"),
    Permission("batch", ("cronjobs", "jobs"), _READ, "is granted to sensors"),
    Permission("discovery.k8s.io", ("endpointslices",), _READ, "is granted to sensors; finds etcd"),
    Permission("extensions", ("deployments", "ingresses", "replicasets"), _READ, "is granted to sensors"),
    Permission("networking.k8s.io", ("ingresses",), _READ, "is granted to sensors"),
    Permission(
        "security.openshift.io",
        ("securitycontextconstraints",),
        ("use",),
        "is granted to agents and sensors",
        names=("privileged",),
    ),
)
WIDE: Final = (
    Permission("rbac.authorization.k8s.io", _ROLES, _KEEP, "keeps the roles of agents and sensors"),
    IMPERSONATES,
    REVIEWS,
    *_WORKLOAD,
)
"""In all namespaces, and for objects that have none."""

ETCD: Final = (
    Permission("", ("secrets",), _READ, "copies the client certificate of etcd on OpenShift", names=("etcd-client",)),
)
"""In OpenShift's namespace of etcd, where namespaces are named that may have the copy."""

_CONFIGURATIONS: Final = AGENT_CONFIGURATIONS.plural
_PLACEMENTS: Final = AGENT_PLACEMENTS.plural
FLEET: Final = (
    Permission(AGENT_CONFIGURATIONS.group, (_CONFIGURATIONS,), (*_READ, "patch"), "follows configurations of agents"),
    Permission(
        AGENT_PLACEMENTS.group,
        (_PLACEMENTS,),
        _KEEP,
        "keeps an AgentPlacement for each cluster with an agent",
    ),
    Permission(
        AGENT_PLACEMENTS.group,
        (f"{_CONFIGURATIONS}/status", f"{_PLACEMENTS}/status"),
        ("patch",),
        "reports the state of agents",
    ),
    Permission(CLUSTER_PROFILES.group, (CLUSTER_PROFILES.plural,), ("list", "watch"), "finds the clusters"),
    Permission("", ("secrets",), ("get", "list", "watch"), "distributes keys of agents"),
    Permission("", ("events",), ("create", "patch"), "reports agents that fail, and that run again"),
)
"""In the namespace of the fleet."""
