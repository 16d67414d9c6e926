"""Runtime and every name that is contract around it.

Contract: Kyma infrastructure-manager, API group infrastructuremanager.kyma-project.io/v1 (sections 1.2, 1.4 and 1.5 of
its specification), with the fields that later versions of it added (section 10). Reasons, messages and labels are kept
to the letter, misspellings included: brokers, dashboards and other controllers match on them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import field

from hortus.domains.clusters.workers import Worker
from hortus.domains.credentials.types import GROUP, MANAGER, VERSION, Label
from hortus.kube.objects import Object, Resource
from hortus.schema import AGE, Column, Condition, Extra, Fields, Format, Kind, PreserveUnknown, Shape, Values, kind

__all__ = [
    "FIELD_MANAGER",
    "FINALIZER",
    "GROUP",
    "MANAGER",
    "RUNTIMES",
    "VERSION",
    "Annotation",
    "ConditionType",
    "Label",
    "OidcConfig",
    "Reason",
    "Runtime",
    "ShootAnnotation",
    "ShootLabel",
    "State",
    "Worker",
]


class ClientAuthentication(Fields, frozen=True):
    """Accepted for compatibility; Gardener has no use for it."""

    extra_config: dict[str, str] | None = None
    """Further settings."""
    secret: str | None = None
    """Secret of the client."""


class OidcConfig(Fields, frozen=True):
    """An OpenID Connect provider whose tokens the cluster's API server accepts."""

    ca_bundle: str | None = None
    """Certificates by which the provider is trusted."""
    client_authentication: ClientAuthentication | None = None
    """Accepted for compatibility; without effect."""
    client_id: str | None = field(name="clientID", default=None)
    """Client that tokens must be issued for."""
    groups_claim: str | None = None
    """Claim that holds a user's groups."""
    groups_prefix: str | None = None
    """What is put before each group."""
    issuer_url: str | None = field(name="issuerURL", default=None)
    """Address of the provider; https."""
    required_claims: dict[str, str] | None = None
    """Claims that a token must have, with their values."""
    signing_algs: tuple[str, ...] | None = None
    """Signature algorithms that are accepted."""
    username_claim: str | None = None
    """Claim that holds a user's name."""
    username_prefix: str | None = None
    """What is put before each user's name; - for nothing."""


class AdditionalOidcConfig(OidcConfig, frozen=True):
    """A further OpenID Connect provider, kept as an OpenIDConnect object in the cluster."""

    jwks: Annotated[str, Format("byte")] | None = None
    """The provider's keys (a JSON Web Key Set), where it cannot be asked for them."""


class Acl(Fields, frozen=True):
    """Who may reach the cluster's API server."""

    allowed_cidrs: tuple[str, ...] = field(name="allowedCIDRs", default=())
    """Address ranges it may be reached from; none: from everywhere."""


class ApiServer(Fields, frozen=True):
    """Settings of the cluster's API server."""

    acl: Acl | None = None
    """Who may reach it."""
    additional_oidc_config: tuple[AdditionalOidcConfig, ...] = ()
    """OpenID Connect providers that are kept as OpenIDConnect objects in the cluster."""
    oidc_config: OidcConfig | None = None
    """The OpenID Connect provider that the API server itself knows. The operator's default when left out."""


class Kubernetes(Fields, frozen=True):
    """Kubernetes of the cluster."""

    kube_api_server: ApiServer | None = field(name="kubeAPIServer", default=None)
    """Settings of its API server."""
    version: str | None = None
    """Version of Kubernetes. The operator's default when left out; a cluster that is newer is never taken back."""


class Networking(Fields, frozen=True):
    """Address ranges of the cluster. They cannot be changed later."""

    nodes: str
    """Range of the nodes."""
    pods: str
    """Range of the pods."""
    services: str
    """Range of the services."""
    dual_stack: bool | None = None
    """Whether the cluster has IPv6 beside IPv4."""
    type: str | None = None
    """Network plug-in: calico or cilium."""
    vpc_network: str | None = None
    """An existing network of the provider to live in."""

    @property
    def ranges(self) -> dict[str, str]:
        """The address ranges by the names of their fields."""
        return {"nodes": self.nodes, "pods": self.pods, "services": self.services}


class Provider(Fields, frozen=True):
    """The provider of the infrastructure, and the machines."""

    type: Annotated[str, Values("aws", "azure", "gcp", "openstack", "alicloud")]
    """Which provider."""
    workers: tuple[Annotated[Object, Shape(Worker)], ...]
    """The main worker pool: exactly one."""
    additional_workers: tuple[Annotated[Object, Shape(Worker)], ...] = ()
    """Further worker pools."""
    control_plane_config: dict[str, Any] | None = None
    """Accepted for compatibility; it is computed from zones and networks."""
    infrastructure_config: dict[str, Any] | None = None
    """Accepted for compatibility; it is computed from zones and networks."""


class FailureTolerance(Fields, frozen=True):
    """What the control plane outlives."""

    type: str
    """The loss of a node or of a zone."""


class HighAvailability(Fields, frozen=True):
    """A control plane that outlives failures."""

    failure_tolerance: FailureTolerance
    """What it outlives."""


class ControlPlane(Fields, frozen=True):
    """The cluster's control plane."""

    high_availability: HighAvailability | None = None
    """Whether it outlives failures."""


class RuntimeShoot(Fields, frozen=True):
    """The cluster that is wanted."""

    name: str
    """Name of the Shoot in the garden."""
    networking: Networking
    """Address ranges."""
    platform_region: str
    """Region of the platform that the customer chose; some of them restrict who may access."""
    provider: Provider
    """The provider of the infrastructure, and the machines."""
    purpose: str
    """What the cluster is for: production, evaluation, development or testing."""
    region: str
    """Region of the provider."""
    secret_binding_name: str
    """The binding in the garden to the credentials for the provider."""
    control_plane: Annotated[Object, Shape(ControlPlane)] | None = None
    """The control plane."""
    enable_nvidia_openshell: bool | None = None
    """Whether the extension for NVIDIA OpenShell is switched on."""
    enforce_seed_location: bool | None = None
    """Whether the control plane must lie in the region of the cluster."""
    kubernetes: Kubernetes | None = None
    """Version and settings of Kubernetes."""
    licence_type: str | None = None
    """Licence of the customer, written on the Shoot."""

    @property
    def version(self) -> str:
        """The version of Kubernetes that is asked for; empty for the operator's default."""
        return (self.kubernetes.version if self.kubernetes is not None else None) or ""

    @property
    def api_server(self) -> ApiServer:
        """The settings of the API server; none where they are left out."""
        return (self.kubernetes.kube_api_server if self.kubernetes is not None else None) or ApiServer()


class Filter(Fields, frozen=True):
    """A filter that is on or off."""

    enabled: bool
    """Whether it is on."""


class NetworkFilter(Fields, frozen=True):
    """Filters of the cluster's traffic."""

    egress: Filter
    """Traffic out of the cluster."""
    ingress: Filter | None = None
    """Traffic into the cluster."""


class SecurityNetworking(Fields, frozen=True):
    """Network security."""

    filter: NetworkFilter
    """Filters of the cluster's traffic."""


class Security(Fields, frozen=True):
    """Who may do what."""

    administrators: tuple[str, ...]
    """Users who are cluster-admin in the cluster."""
    networking: SecurityNetworking
    """Network security."""


_SWITCH: Final = {"properties": {"enabled": {"type": "boolean"}}, "required": ["enabled"]}
_FREE: Final = {"x-kubernetes-preserve-unknown-fields": True}
_CACHE: Final = {
    "type": "object",
    "required": ["upstream"],
    "properties": {
        "upstream": {"type": "string", "minLength": 1},
        "remoteURL": {"type": "string"},
        "secretReferenceName": {"type": "string"},
        **{name: {"type": "object", **_FREE} for name in ("volume", "garbageCollection", "proxy", "http")},
    },
    **_FREE,
}
_ENTRY: Final = {"type": "object", "required": ["config"], "properties": {"config": _CACHE}, **_FREE}
_CACHES: Final = {"items": _ENTRY}
# A schema without a type cannot name two of them; each kind of scalar is refused by a keyword for it that none meets.
_NO_SCALAR: Final = {
    "pattern": "^$must be an object or a list of caches",
    "minimum": 1,
    "maximum": 0,
    "not": {"enum": [True, False]},
}


class RuntimeSpec(Fields, frozen=True):
    """What is wanted."""

    security: Security
    """Who may do what."""
    shoot: RuntimeShoot
    """The cluster that is wanted."""
    audit_log_access_enabled: bool | None = None
    """Whether the customer may read the cluster's audit log."""
    image_registry_cache: (
        Annotated[Any, PreserveUnknown(), Extra(_SWITCH), Extra(_CACHES), Extra(_NO_SCALAR)] | None
    ) = None
    """Whether images are cached in the cluster, as an object with `enabled`; or the caches themselves, as a list."""


class RuntimeStatus(Fields, frozen=True):
    """What became of it."""

    state: Literal["Pending", "Ready", "Terminating", "Failed"]
    """All in one word."""
    conditions: tuple[Condition, ...] = ()
    """What was reached, and what is in the way."""
    provisioning_completed: bool | None = None
    """Whether the cluster has been Ready once."""


@kind(
    group=GROUP,
    version=VERSION,
    status=True,
    columns=(
        Column("Provider", ".spec.shoot.provider.type"),
        Column("Region", ".spec.shoot.region"),
        Column("STATE", ".status.state"),
        AGE,
    ),
)
class Runtime(Kind, frozen=True):
    """A cluster: a Gardener shoot with its kubeconfig, its administrators and its policies."""

    spec: RuntimeSpec | None = None
    """What is wanted."""
    status: RuntimeStatus | None = None
    """What became of it."""

    @property
    def wanted(self) -> RuntimeSpec:
        """The spec, for callers that have seen to it that there is one: the contract's CRD does not demand it."""
        if self.spec is None:
            raise ValueError(f"Runtime {self.metadata.namespace}/{self.metadata.name} has no spec")
        return self.spec


RUNTIMES: Final = Resource(GROUP, VERSION, "runtimes", "Runtime")
FIELD_MANAGER: Final = "kim"
"""Who applies Shoots and objects in workload clusters: the Go system's name, so that fields change hands silently."""
FINALIZER: Final = "runtime-controller.infrastructure-manager.kyma-project.io/deletion-hook"


class State:
    """Values of `status.state`."""

    PENDING: Final = "Pending"
    READY: Final = "Ready"
    TERMINATING: Final = "Terminating"
    FAILED: Final = "Failed"


class ConditionType:
    """Condition types of a Runtime."""

    PROVISIONED: Final = "Provisioned"
    KUBECONFIG_READY: Final = "KubeconfigReady"
    OIDC_CONFIGURED: Final = "OidcConfigured"
    CONFIGURED: Final = "Configured"
    DEPROVISIONED: Final = "Deprovisioned"


class Reason:
    """Reasons of conditions, as they stand on the wire."""

    PROCESSING: Final = "Processing"
    PROCESSING_ERR: Final = "ProcessingErr"
    INITIALISED: Final = "Initialised"
    PENDING: Final = "Pending"
    SHOOT_CREATED: Final = "ShootCreationCompleted"
    KUBECONFIG_REQUESTED: Final = "GardenerClusterCRCreated"
    KUBECONFIG_READY: Final = "GardenerClusterCRReady"
    CONFIGURED: Final = "ConfigurationCompleted"
    CONFIGURATION_ERR: Final = "ConfigurationError"
    KUBECONFIG_DELETED: Final = "GardenerClusterCRDeleted"
    SHOOT_DELETED: Final = "GardenerShootDeleted"
    STRUCTURED_CONFIG_DELETED: Final = "StructuredConfigDeleted"
    CONVERSION_ERR: Final = "ConversionErr"
    CREATION_ERR: Final = "CreationErr"
    GARDENER_ERR: Final = "GardenerErr"
    KUBERNETES_ERR: Final = "KubernetesErr"
    AUDIT_LOG_ERR: Final = "AuditLogErr"
    ADMINISTRATORS: Final = "AdministratorsConfigured"
    OIDC_CONFIGURED: Final = "OidcConfigured"
    OIDC_ERR: Final = "OidcConfigurationErr"
    SEED_NOT_FOUND: Final = "SeedNotFound"
    REGISTRY_CACHE_ERR: Final = "RegistryCacheConfigurationErr"


class Annotation:
    """Annotation keys of a Runtime."""

    FORCE_PATCH: Final = "operator.kyma-project.io/force-patch-reconciliation"
    """`true` has the Shoot patched once, though nothing changed."""
    SUSPEND_PATCH: Final = "operator.kyma-project.io/suspend-patch-reconciliation"
    """`true` keeps the Shoot from being patched until the annotation is gone. It wins over FORCE_PATCH."""
    FORCE_DELETION: Final = "clusters.hortus.dev/force-deletion"
    """Ours: `true` lets a deletion that failed for a reason in the infrastructure go on without cleaning up there."""
    ADOPT: Final = "clusters.hortus.dev/adopt-shoot"
    """Ours: the uid of a Shoot that belongs to no Runtime and is to be this one's from now on."""
    CLUSTER: Final = "clusters.hortus.dev/cluster"
    """Ours: the Runtime's uid and runtime-id, name and uid of its Shoot, divided by slashes. Written once the Runtime
    has it, so that no edit of a label or of the Shoot's annotations takes the Shoot from its Runtime unnoticed. On a
    Runtime with another uid, such as a copy, it says nothing."""
    LEAVE: Final = "clusters.hortus.dev/leave-shoot"
    """Ours: the uid of a Shoot that is not deleted with the Runtime and holds it no longer."""
    ADOPTION: Final = "clusters.hortus.dev/adoption"
    """Ours: `locked` on a Runtime that was built from a Shoot and is not compared with it yet. Nothing is done for it:
    deleting it deletes nothing else."""


class ShootAnnotation:
    """Annotation keys of a Shoot."""

    RUNTIME_ID: Final = "infrastructuremanager.kyma-project.io/runtime-id"
    """Which Runtime the Shoot belongs to. A Shoot that says otherwise is never changed or deleted."""
    RUNTIME_GENERATION: Final = "infrastructuremanager.kyma-project.io/runtime-generation"
    """The generation of the Runtime that the Shoot was last patched for."""
    LICENCE_TYPE: Final = "infrastructuremanager.kyma-project.io/licence-type"
    DELETION: Final = "confirmation.gardener.cloud/deletion"
    """`true` is demanded by Gardener before a Shoot may be deleted."""
    FORCE_DELETION: Final = "confirmation.gardener.cloud/force-deletion"
    """`true` has Gardener give up resources it cannot clean up; admitted only during a deletion that failed."""


class ShootLabel:
    """Label keys of a Shoot."""

    ACCOUNT: Final = "account"
    """The global account that the Runtime had at the last patch."""
    SUBACCOUNT: Final = "subaccount"


class RequiredLabels:
    """What a Runtime must be labelled with."""

    IN_ORDER: Final = (
        Label.INSTANCE_ID,
        Label.RUNTIME_ID,
        Label.REGION,
        Label.KYMA_NAME,
        Label.BROKER_PLAN_ID,
        Label.BROKER_PLAN_NAME,
        Label.GLOBAL_ACCOUNT_ID,
        Label.SUBACCOUNT_ID,
    )
    """In the order in which they are checked (section 1.4)."""
