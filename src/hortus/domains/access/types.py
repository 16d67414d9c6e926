"""ClusterAccess and every name around it.

The kind is Hortus' own: Kyma's infrastructure-manager hands out the administrator's kubeconfig alone. The meaning of a
rule is RBAC's: Kubernetes docs, "Using RBAC Authorization".
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from hortus.kube.objects import Resource
from hortus.schema import AGE, Column, Condition, Fields, Format, Kind, ListMap, ListSet, ValidationRule, kind

GROUP: Final = "access.hortus.dev"
VERSION: Final = "v1alpha1"

_DNS_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_DNS_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_Name = Annotated[str, Meta(min_length=1, max_length=253, pattern=_DNS_NAME)]
_Namespace = Annotated[str, Meta(min_length=1, max_length=63, pattern=_DNS_LABEL)]
_Word = Annotated[str, Meta(max_length=253)]
_Verb = Annotated[str, Meta(min_length=1, max_length=63)]

LEAST_SECONDS: Final = 600
"""The shortest life of a token that Kubernetes issues."""
DEFAULT_SECONDS: Final = 3600


class ClusterRef(Fields, frozen=True):
    """The cluster to get into."""

    name: _Name
    """Name of the GardenerCluster or Runtime."""
    kind: Literal["GardenerCluster", "Runtime"] = "GardenerCluster"
    """GardenerCluster or Runtime."""
    namespace: Annotated[str, Meta(max_length=63)] = ""
    """Namespace of the cluster; that of the request when empty."""


class AccessRule(Fields, frozen=True):
    """Permissions, as a rule of a Role."""

    __rules__ = (
        ValidationRule(
            "has(self.nonResourceURLs) ? !has(self.resources) && !has(self.apiGroups) && !has(self.resourceNames)"
            " : has(self.resources) && has(self.apiGroups)",
            message="name either apiGroups and resources, or nonResourceURLs",
        ),
    )

    verbs: Annotated[tuple[_Verb, ...], Meta(min_length=1, max_length=20), ListSet()]
    """Verbs: get, list, watch, create, update, patch, delete, and so on."""
    api_groups: Annotated[tuple[_Word, ...], Meta(max_length=50), ListSet()] = ()
    """Groups of the resources; the core group is the empty text."""
    resources: Annotated[tuple[_Word, ...], Meta(max_length=100), ListSet()] = ()
    """Plurals, with a subresource as in deployments/scale."""
    resource_names: Annotated[tuple[_Word, ...], Meta(max_length=100), ListSet()] = ()
    """Only objects of these names; all when empty."""
    non_resource_urls: Annotated[tuple[_Word, ...], Meta(max_length=50), ListSet()] = field(
        name="nonResourceURLs", default=()
    )
    """Paths such as /metrics. Only in a request without namespaces."""


class RoleRef(Fields, frozen=True):
    """A role of the cluster whose rules are wanted."""

    name: Annotated[str, Meta(min_length=1, max_length=253)]
    """Name of the role. Its rules are checked and copied, also when they change later."""
    kind: Literal["ClusterRole", "Role"] = "ClusterRole"
    """ClusterRole or Role; a Role is looked up in each of the namespaces."""


class SecretRef(Fields, frozen=True):
    """The Secret for the kubeconfig, in the namespace of the request."""

    name: _Name
    """Name of the Secret, which is made. One that is there already is never touched."""
    key: Annotated[str, Meta(min_length=1, max_length=253, pattern="^[-._a-zA-Z0-9]+$")] = "config"
    """Key of the Secret's data that holds the kubeconfig."""


class AccountSpec(Fields, frozen=True):
    """The ServiceAccount in the cluster, where the default one does not do."""

    name: _Name
    """Its name. An account of that name that is not this request's own is never touched or used."""
    namespace: _Namespace
    """Its namespace, which must be there. A user who may run Pods in it can use the account."""
    labels: Annotated[dict[str, Annotated[str, Meta(max_length=63)]], Meta(max_length=20)] = field(default_factory=dict)
    """Labels of the account, besides our own."""
    annotations: Annotated[dict[str, Annotated[str, Meta(max_length=1024)]], Meta(max_length=20)] = field(
        default_factory=dict
    )
    """Annotations of the account, besides our own, such as a cloud provider's identity."""


class ClusterAccessSpec(Fields, frozen=True):
    """The cluster, the client and its permissions."""

    __rules__ = (
        ValidationRule("has(self.rules) != has(self.roleRef)", message="name either rules or roleRef"),
        ValidationRule(
            "!has(self.roleRef) || self.roleRef.kind != 'Role' || has(self.namespaces)",
            message="a Role is one of a namespace: name namespaces",
        ),
        ValidationRule(
            "!has(self.namespaces) || !has(self.rules) || self.rules.all(r, !has(r.nonResourceURLs))",
            message="nonResourceURLs have no namespace: leave namespaces out",
        ),
        ValidationRule(
            "self.clusterRef == oldSelf.clusterRef", message="clusterRef is immutable: make another ClusterAccess"
        ),
        ValidationRule("self.client == oldSelf.client", message="client is immutable: make another ClusterAccess"),
        ValidationRule(
            "has(self.serviceAccount) == has(oldSelf.serviceAccount) && (!has(self.serviceAccount) ||"
            " self.serviceAccount.name == oldSelf.serviceAccount.name &&"
            " self.serviceAccount.__namespace__ == oldSelf.serviceAccount.__namespace__)",
            message="serviceAccount keeps its name and namespace: make another ClusterAccess",
        ),
    )

    cluster_ref: ClusterRef
    """The cluster to get into."""
    client: Annotated[str, Meta(min_length=1, max_length=40, pattern=_DNS_LABEL)]
    """Name of the client. It is part of the ServiceAccount's name, so that audit logs of the cluster name it."""
    secret: SecretRef
    """The Secret for the kubeconfig."""
    rules: Annotated[tuple[AccessRule, ...], Meta(min_length=1, max_length=50)] = ()
    """Permissions of the client."""
    role_ref: RoleRef | None = None
    """A role of the cluster that says what the client may do, instead of rules."""
    service_account: AccountSpec | None = None
    """The account in the cluster; one in kube-system that is named after the client when left out."""
    namespaces: Annotated[tuple[_Namespace, ...], Meta(min_length=1, max_length=50), ListSet()] = ()
    """Namespaces of the cluster in which the client may do it; the whole cluster when empty. They must be there."""
    expiration_seconds: Annotated[int, Meta(ge=LEAST_SECONDS, le=86400), Format("int64")] = DEFAULT_SECONDS
    """Lifetime of each token; the operator may allow less, the cluster may grant another time."""
    rotate_at_percent: Annotated[int, Meta(ge=10, le=90), Format("int32")] = 60
    """Share of a token's life, in percent, after which the kubeconfig is replaced."""


class IssuedSecret(Fields, frozen=True):
    """The Secret that holds the kubeconfig."""

    name: str = ""
    """Its name, in the namespace of the request."""
    uid: str = ""
    """Its uid: another Secret of that name is not ours."""


class ClusterAccessStatus(Fields, frozen=True):
    """State of the request."""

    observed_generation: Annotated[int, Meta(ge=0), Format("int64")] | None = None
    """The generation that the conditions speak of."""
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """Ready: the kubeconfig is there and was seen to work. Reconciling and Stalled as kstatus reads them."""
    cluster: str = ""
    """The GardenerCluster behind clusterRef, as namespace/name."""
    shoot: str = ""
    """The Shoot of that GardenerCluster."""
    service_account: str = ""
    """The account in the cluster, as namespace/name."""
    secret: IssuedSecret | None = None
    """The Secret that holds the kubeconfig."""
    issued_at: Annotated[str, Format("date-time")] | None = None
    """When the kubeconfig was written last."""
    expires_at: Annotated[str, Format("date-time")] | None = None
    """When its token ends. It is replaced before."""
    inventory: tuple[str, ...] = ()
    """The objects in the cluster that belong to this request, one line each, so that they are found again."""


@kind(
    group=GROUP,
    version=VERSION,
    plural="clusteraccesses",
    status=True,
    columns=(
        Column("CLUSTER", ".spec.clusterRef.name"),
        Column("CLIENT", ".spec.client"),
        Column("READY", '.status.conditions[?(@.type=="Ready")].status'),
        Column("REASON", '.status.conditions[?(@.type=="Ready")].reason'),
        Column("EXPIRES", ".status.expiresAt", type="string", priority=1),
        AGE,
    ),
)
class ClusterAccess(Kind, frozen=True):
    """A kubeconfig for one client of a cluster, which may do what is asked for here and nothing else."""

    spec: ClusterAccessSpec
    """The cluster, the client and its permissions."""
    status: ClusterAccessStatus = ClusterAccessStatus()
    """State of the request."""


class Reason:
    """Reasons of the conditions, each with the owner of the next step."""

    ISSUED: Final = "Issued"
    """Nobody's: the kubeconfig is there."""
    NOT_ALLOWED: Final = "NotAllowed"
    """The requester's, or the operator's who sets the limits: more is asked for than this installation allows."""
    NOT_PERMITTED: Final = "NotPermitted"
    """The operator's: the namespace of the request is not trusted, and may not have access to the cluster."""
    CLUSTER_MISSING: Final = "ClusterMissing"
    """The requester's: no such cluster, or it has no kubeconfig of its own yet."""
    ROLE_MISSING: Final = "RoleMissing"
    """The requester's: the role that roleRef names is not there."""
    NAMESPACE_MISSING: Final = "NamespaceMissing"
    """The requester's: a namespace is not there."""
    ACCOUNT_TAKEN: Final = "AccountTaken"
    """The requester's: a ServiceAccount of that name is there and somebody else's."""
    SECRET_TAKEN: Final = "SecretTaken"  # noqa: S105 - a reason
    """The requester's: a Secret of that name is there and somebody else's."""
    UNREACHABLE: Final = "ClusterUnreachable"
    """The cluster owner's, or time heals it: the cluster does not answer."""
    REFUSED: Final = "ClusterRefused"
    """The cluster owner's: the cluster answered with an error."""
    NOT_PROVEN: Final = "NotProven"
    """Time heals it, or the cluster owner's: the token may not do yet what was asked for."""
    MORE_THAN_ASKED: Final = "MoreThanAsked"
    """The cluster owner's: something else gives the account more permissions; no kubeconfig is handed out."""
    REMOVING: Final = "Removing"
    """Nobody's: what lies in the cluster is being removed."""
    DETACHED: Final = "Detached"
    """Event only. The cluster owner's: the cluster could not be reached, the event names what may be left in it."""


VERB: Final = "access"
"""Verb on GardenerClusters: having kubeconfigs made for the cluster, within the operator's policy of powers."""
FINALIZER: Final = "access.hortus.dev/workload"
"""Holds a request until what it made in the cluster is gone, or the deadline for that is over."""


class Label:
    REQUEST: Final = "access.hortus.dev/request"
    """On objects in the cluster and on the Secret: the mark of their request."""
    MANAGED_BY: Final = "app.kubernetes.io/managed-by"


MANAGER: Final = "hortus-access"
"""The value of the managed-by label, and our field manager."""


class Annotation:
    ISSUED: Final = "access.hortus.dev/issued-at"
    """On the Secret: when the kubeconfig was written, RFC 3339."""
    EXPIRES: Final = "access.hortus.dev/expires-at"
    """On the Secret: when its token ends, RFC 3339."""
    CHECKSUM: Final = "access.hortus.dev/checksum"
    """On the Secret: of the value we wrote, so that an edit by somebody else is noticed."""
    MADE_FOR: Final = "access.hortus.dev/made-for"
    """On the Secret: a checksum of server, CA, cluster and account it leads to."""
    CLIENT: Final = "access.hortus.dev/client"
    """On objects in the cluster: the request's namespace, name and client."""


CLUSTER_ACCESSES: Final = Resource(GROUP, VERSION, "clusteraccesses", "ClusterAccess")
