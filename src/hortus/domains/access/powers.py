"""The table of powers: for each resource of Kubernetes, which verb leads to more than it says.

Some permissions of RBAC lead to all others: to impersonate, to read every Secret, to run a Pod with any account, to
send traffic where it does not belong. Each such way has a name here. Verbs, resources and paths that the table does not
have count as the power `unlisted`, since it is not known where they lead.

Sources: Kubernetes docs, "RBAC good practices: privilege escalation risks", "Authorization: verbs", "Pod Security
Standards", "Service: external IPs" (CVE-2020-8554), "Network policies", and the advisories on Endpoints
(CVE-2021-25740) and on Ingress (CVE-2021-25742).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

POWERS: Final[Mapping[str, str]] = {
    "wildcards": "`*` as verb, group, resource or path: nobody knows what it will mean tomorrow",
    "escalation": "the verbs escalate, bind and impersonate, and writing roles and bindings",
    "secrets": "Secrets: all tokens and passwords of a namespace, and tokens made for any of its ServiceAccounts",
    "tokens": "making ServiceAccounts and tokens of them, asking for, approving and signing certificates",
    "workloads": "running, changing or entering Pods: with any ServiceAccount, Secret and volume of the namespace, "
    "and on the node itself where Pod Security does not forbid it",
    "nodes": "nodes/proxy and other subresources of nodes; changing nodes, their storage, runtimes and devices",
    "network": "taking over or opening traffic: Services and their proxy, Endpoints, Ingresses, Gateways, policies",
    "namespaces": "making, changing and deleting namespaces, whose labels Pod Security and network policies go by",
    "admission": "webhooks, admission policies, API services and definitions, which see or change what others write",
    "limits": "quotas, limit ranges, disruption budgets, priorities of Pods and of requests",
    "unlisted": "verbs, resources and paths that this table does not know, custom resources among them",
    "system-namespaces": "kube-system, kube-public and kube-node-lease, also as part of the whole cluster",
}
"""Each power with what it opens."""

UNLISTED: Final = "unlisted"
SYSTEM: Final = "system-namespaces"
_RBAC: Final = "rbac.authorization.k8s.io"
_GATEWAY: Final = "gateway.networking.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"

_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "update", "patch")
_DELETE: Final = ("delete", "deletecollection")
_ALL: Final = (*_READ, *_WRITE, *_DELETE)
HARMLESS: Final = ""


class Row(msgspec.Struct, frozen=True):
    """Resources of one group, each with the same verbs."""

    group: str
    resources: frozenset[str]
    namespaced: bool
    verbs: Mapping[str, str]
    """The power that each verb leads to, or HARMLESS; others are unlisted."""


def _row(
    group: str,
    resources: str,
    *,
    read: str = HARMLESS,
    write: str = HARMLESS,
    delete: str = HARMLESS,
    cluster: bool = False,
) -> Row:
    verbs = dict.fromkeys(_READ, read) | dict.fromkeys(_WRITE, write) | dict.fromkeys(_DELETE, delete)
    return Row(group, frozenset(resources.split()), namespaced=not cluster, verbs=verbs)


def _all(group: str, resources: str, power: str, *, cluster: bool = False) -> Row:
    """Every verb is the power."""
    return _row(group, resources, read=power, write=power, delete=power, cluster=cluster)


def _changed(group: str, resources: str, power: str, *, cluster: bool = False) -> Row:
    """Reading is harmless, everything else is the power."""
    return _row(group, resources, write=power, delete=power, cluster=cluster)


def _asked(group: str, resources: str, power: str = HARMLESS, *, cluster: bool = False) -> Row:
    """Create alone is the power, or harmless."""
    return Row(group, frozenset(resources.split()), namespaced=not cluster, verbs={"create": power})


def _only(group: str, resources: str, verbs: str, power: str) -> Row:
    """Resources that exist in authorization alone."""
    return Row(group, frozenset(resources.split()), namespaced=False, verbs=dict.fromkeys(verbs.split(), power))


_HARMLESS_ROWS: Final = (
    _row("", "configmaps persistentvolumeclaims events"),
    _row("events.k8s.io", "events"),
    _row("coordination.k8s.io", "leases"),
    _row("autoscaling", "horizontalpodautoscalers"),
    _row("", "replicationcontrollers/scale"),
    _row("apps", "deployments/scale replicasets/scale statefulsets/scale"),
    _asked("", "pods/eviction"),
    _asked("authentication.k8s.io", "tokenreviews selfsubjectreviews", cluster=True),
    _asked("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", cluster=True),
    _asked("authorization.k8s.io", "subjectaccessreviews", cluster=True),
    _asked("authorization.k8s.io", "localsubjectaccessreviews"),
)
_RIGHTS: Final = (
    _changed(_RBAC, "roles rolebindings", "escalation"),
    _changed(_RBAC, "clusterroles clusterrolebindings", "escalation", cluster=True),
    _only("", "users groups", "impersonate", "escalation"),
    _only("authentication.k8s.io", "userextras uids", "impersonate", "escalation"),
    _all("", "secrets", "secrets"),
    _row("", "serviceaccounts", write="tokens"),
    _asked("", "serviceaccounts/token", "tokens"),
    _changed(
        "certificates.k8s.io",
        "certificatesigningrequests certificatesigningrequests/approval certificatesigningrequests/status "
        "clustertrustbundles",
        "tokens",
        cluster=True,
    ),
    _changed("certificates.k8s.io", "podcertificaterequests podcertificaterequests/status", "tokens"),
    _only("certificates.k8s.io", "signers", "approve sign attest", "tokens"),
)
_WORKLOADS: Final = (
    _row("", "pods replicationcontrollers podtemplates", write="workloads"),
    _row("", "pods/log"),
    _changed("", "pods/status replicationcontrollers/status", "workloads"),
    _all("", "pods/exec pods/attach pods/portforward pods/proxy pods/ephemeralcontainers pods/resize", "workloads"),
    _row("", "bindings pods/binding", write="workloads"),
    _row("apps", "deployments daemonsets replicasets statefulsets controllerrevisions", write="workloads"),
    _changed("apps", "deployments/status daemonsets/status replicasets/status statefulsets/status", "workloads"),
    _row("batch", "jobs cronjobs", write="workloads"),
    _changed("batch", "jobs/status cronjobs/status", "workloads"),
    _changed("autoscaling", "horizontalpodautoscalers/status", "workloads"),
)
_MACHINES: Final = (
    _changed("", "nodes persistentvolumes persistentvolumes/status", "nodes", cluster=True),
    _all(
        "",
        "nodes/proxy nodes/log nodes/metrics nodes/stats nodes/status nodes/configz nodes/healthz nodes/pods "
        "nodes/checkpoint",
        "nodes",
        cluster=True,
    ),
    _row("", "componentstatuses", write="nodes", delete="nodes", cluster=True),
    _changed("", "persistentvolumeclaims/status", "nodes"),
    _changed(
        "storage.k8s.io",
        "storageclasses csidrivers csinodes volumeattachments volumeattachments/status volumeattributesclasses",
        "nodes",
        cluster=True,
    ),
    _changed("storage.k8s.io", "csistoragecapacities", "nodes"),
    _changed("node.k8s.io", "runtimeclasses", "nodes", cluster=True),
    _changed("resource.k8s.io", "deviceclasses resourceslices devicetaintrules", "nodes", cluster=True),
    _changed("resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates", "nodes"),
    _row("metrics.k8s.io", "nodes", cluster=True),
    _row("metrics.k8s.io", "pods"),
)
_TRAFFIC: Final = (
    _row("", "services", write="network"),
    _changed("", "services/status", "network"),
    _all("", "services/proxy", "network"),
    _row("", "endpoints", write="network"),
    _row("discovery.k8s.io", "endpointslices", write="network"),
    _row("networking.k8s.io", "ingresses", write="network"),
    _changed("networking.k8s.io", "ingresses/status networkpolicies networkpolicies/status", "network"),
    _changed(
        "networking.k8s.io", "ingressclasses ipaddresses servicecidrs servicecidrs/status", "network", cluster=True
    ),
    _changed(
        _GATEWAY,
        "gateways httproutes grpcroutes tcproutes tlsroutes udproutes referencegrants backendtlspolicies",
        "network",
    ),
    _changed(_GATEWAY, "gatewayclasses", "network", cluster=True),
    _changed(
        "policy.networking.k8s.io",
        "adminnetworkpolicies baselineadminnetworkpolicies clusternetworkpolicies",
        "network",
        cluster=True,
    ),
)
_RULES: Final = (
    _changed("", "namespaces namespaces/status namespaces/finalize", "namespaces", cluster=True),
    _changed("", "resourcequotas resourcequotas/status limitranges", "limits"),
    _changed("policy", "poddisruptionbudgets poddisruptionbudgets/status", "limits"),
    _changed("scheduling.k8s.io", "priorityclasses", "limits", cluster=True),
    _changed(
        "flowcontrol.apiserver.k8s.io",
        "flowschemas flowschemas/status prioritylevelconfigurations prioritylevelconfigurations/status",
        "limits",
        cluster=True,
    ),
    _changed(
        _ADMISSION,
        "mutatingwebhookconfigurations validatingwebhookconfigurations mutatingadmissionpolicies "
        "mutatingadmissionpolicybindings validatingadmissionpolicies validatingadmissionpolicies/status "
        "validatingadmissionpolicybindings",
        "admission",
        cluster=True,
    ),
    _changed("apiregistration.k8s.io", "apiservices apiservices/status", "admission", cluster=True),
    _changed(
        "apiextensions.k8s.io",
        "customresourcedefinitions customresourcedefinitions/status",
        "admission",
        cluster=True,
    ),
    _changed("internal.apiserver.k8s.io", "storageversions storageversions/status", "admission", cluster=True),
    _changed("storagemigration.k8s.io", "storageversionmigrations", "admission", cluster=True),
)
_EXTENSIONS: Final = (
    _row("extensions", "deployments daemonsets replicasets", write="workloads"),
    _changed("extensions", "deployments/status daemonsets/status replicasets/status", "workloads"),
    _row("extensions", "deployments/scale replicasets/scale replicationcontrollers/scale"),
    _row("extensions", "ingresses", write="network"),
    _changed("extensions", "ingresses/status networkpolicies", "network"),
)
"""A group that no cluster serves any more, and that default roles still name."""
TABLE: Final = (*_HARMLESS_ROWS, *_RIGHTS, *_WORKLOADS, *_MACHINES, *_TRAFFIC, *_RULES, *_EXTENSIONS)

_PATH_WORDS: Final = "api apis healthz livez readyz openapi version"
PATHS: Final = frozenset(
    {"/metrics", "/.well-known/openid-configuration", "/openid/v1/jwks"}
    | {f"/{word}{rest}" for word in _PATH_WORDS.split() for rest in ("", "/", "/*")}
)
"""Paths that show what every client may know, and the numbers of the API server."""
PATH_VERBS: Final = frozenset({"get", "head"})
