"""The kind Runtime, with its labels, annotations, condition types and reasons.

Contract: API group infrastructuremanager.kyma-project.io/v1, as kyma-project/infrastructure-manager has it in
api/v1/runtime_types.go, with the fields of its later versions. Reasons, messages and labels are the same to the letter,
misspellings included: brokers, dashboards and other controllers match on them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from hortus.domains.clusters.apiservers import ApiServer, Kubernetes, OidcConfig
from hortus.domains.clusters.workers import Worker
from hortus.domains.credentials.types import GROUP, MANAGER, VERSION, Label
from hortus.kube.objects import Object, Resource
from hortus.schema import AGE, Column, Condition, Extra, Fields, Kind, PreserveUnknown, Shape, Values, kind

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


class Networking(Fields, frozen=True):
    """Address ranges of the cluster. They cannot be changed later."""

    nodes: str
    """Range of the nodes."""
    pods: str
    """Range of the pods."""
    services: str
    """Range of the services."""
    dual_stack: bool | None = None
    """Gives the cluster IPv6 in addition to IPv4."""
    type: str | None = None
    """Network plug-in: calico or cilium."""
    vpc_network: str | None = None
    """An existing network of the provider for the cluster's nodes."""

    @property
    def ranges(self) -> dict[str, str]:
        """The address ranges by the names of their fields."""
        return {"nodes": self.nodes, "pods": self.pods, "services": self.services}


class Provider(Fields, frozen=True):
    """The provider of the infrastructure, and the machines."""

    type: Annotated[str, Values("aws", "azure", "gcp", "openstack", "alicloud")]
    """Name of the provider."""
    workers: tuple[Annotated[Object, Shape(Worker)], ...]
    """The main worker pool. The list has exactly one entry."""
    additional_workers: tuple[Annotated[Object, Shape(Worker)], ...] = ()
    """Further worker pools."""
    control_plane_config: dict[str, Any] | None = None
    """Accepted for compatibility; the value is computed from zones and networks."""
    infrastructure_config: dict[str, Any] | None = None
    """Accepted for compatibility; the value is computed from zones and networks."""


class FailureTolerance(Fields, frozen=True):
    """Failures that the control plane survives."""

    type: str
    """Kind of failure: node or zone."""


class HighAvailability(Fields, frozen=True):
    """High availability of the control plane."""

    failure_tolerance: FailureTolerance
    """Failures that the control plane survives."""


class ControlPlane(Fields, frozen=True):
    """The cluster's control plane."""

    high_availability: HighAvailability | None = None
    """Settings of high availability. There is none by default."""


class RuntimeShoot(Fields, frozen=True):
    """The desired cluster."""

    name: str
    """Name of the Shoot in the garden."""
    networking: Networking
    """Address ranges."""
    platform_region: str
    """Region of the platform that the customer chose. Some regions restrict access."""
    provider: Provider
    """The provider of the infrastructure, and the machines."""
    purpose: str
    """Purpose of the cluster: production, evaluation, development or testing."""
    region: str
    """Region of the provider."""
    secret_binding_name: str
    """The binding in the garden that names the credentials for the provider."""
    control_plane: Annotated[Object, Shape(ControlPlane)] | None = None
    """The control plane."""
    enable_nvidia_openshell: bool | None = None
    """Enables the extension for NVIDIA OpenShell."""
    enforce_seed_location: bool | None = None
    """Requires a control plane in the region of the cluster."""
    kubernetes: Kubernetes | None = None
    """Version and settings of Kubernetes."""
    licence_type: str | None = None
    """Licence of the customer. The Shoot carries it as an annotation."""

    @property
    def version(self) -> str:
        """The requested version of Kubernetes; empty for the operator's default."""
        return (self.kubernetes.version if self.kubernetes is not None else None) or ""

    @property
    def api_server(self) -> ApiServer:
        """The settings of the API server, empty if they are left out."""
        return (self.kubernetes.kube_api_server if self.kubernetes is not None else None) or ApiServer()


class Filter(Fields, frozen=True):
    """A filter that is on or off."""

    enabled: bool
    """Switches the filter on."""


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
    """Administrators and network security."""

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
# A schema without a type cannot list two types: for each scalar type a keyword that no value meets refuses it.
_NO_SCALAR: Final = {
    "pattern": "^$must be an object or a list of caches",
    "minimum": 1,
    "maximum": 0,
    "not": {"enum": [True, False]},
}


class RuntimeSpec(Fields, frozen=True):
    """The desired state."""

    security: Security
    """Administrators and network security."""
    shoot: RuntimeShoot
    """The desired cluster."""
    audit_log_access_enabled: bool | None = None
    """Gives the customer access to the cluster's audit log."""
    image_registry_cache: (
        Annotated[Any, PreserveUnknown(), Extra(_SWITCH), Extra(_CACHES), Extra(_NO_SCALAR)] | None
    ) = None
    """Image caches of the cluster: an object with `enabled`, or the list of caches."""


class RuntimeStatus(Fields, frozen=True):
    """The observed state."""

    state: Literal["Pending", "Ready", "Terminating", "Failed"]
    """Summary of the conditions."""
    conditions: tuple[Condition, ...] = ()
    """Steps of the reconcile, each with its result."""
    provisioning_completed: bool | None = None
    """Becomes true when the cluster is Ready for the first time, and stays true."""


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
    """The desired state."""
    status: RuntimeStatus | None = None
    """The observed state."""

    @property
    def wanted(self) -> RuntimeSpec:
        """The spec. Raises ValueError without one: the contract's CRD does not require a spec."""
        if self.spec is None:
            raise ValueError(f"Runtime {self.metadata.namespace}/{self.metadata.name} has no spec")
        return self.spec


RUNTIMES: Final = Resource(GROUP, VERSION, "runtimes", "Runtime")
FIELD_MANAGER: Final = "kim"
"""Field manager for Shoots and for objects in workload clusters. It is the Go system's, so ownership of fields moves
without a conflict."""
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


NOT_PERMITTED: Final = "NotPermitted"
"""Ours: the reason of a condition while the deputy of the Runtime's namespace lacks a permission."""


class Annotation:
    """Annotation keys of a Runtime."""

    FORCE_PATCH: Final = "operator.kyma-project.io/force-patch-reconciliation"
    """`true` causes one patch of the Shoot even if nothing changed."""
    SUSPEND_PATCH: Final = "operator.kyma-project.io/suspend-patch-reconciliation"
    """`true` suspends patches of the Shoot until the annotation is removed. It overrides FORCE_PATCH."""
    FORCE_DELETION: Final = "clusters.hortus.dev/force-deletion"
    """Ours: after a deletion failed in the infrastructure, `true` continues it without the cleanup there."""
    ADOPT: Final = "clusters.hortus.dev/adopt-shoot"
    """Ours: the uid of a Shoot that belongs to no Runtime. This Runtime adopts it."""
    CLUSTER: Final = "clusters.hortus.dev/cluster"
    """Ours: the Runtime's uid and runtime-id, name and uid of its Shoot, separated by slashes. The controller writes it
    once the Runtime has a Shoot and thereby notices when an edit of a label or of the Shoot's annotations separates
    them. It is ignored on a Runtime with another uid, such as a copy."""
    LEAVE: Final = "clusters.hortus.dev/leave-shoot"
    """Ours: the uid of a Shoot that survives the Runtime's deletion and does not delay it."""
    ADOPTION: Final = "clusters.hortus.dev/adoption"
    """Ours: `locked` on a Runtime that was built from a Shoot and is not compared with it yet. The controllers ignore
    the Runtime, and its deletion deletes nothing else."""


class ShootAnnotation:
    """Annotation keys of a Shoot."""

    RUNTIME_ID: Final = "infrastructuremanager.kyma-project.io/runtime-id"
    """The Runtime that owns the Shoot. A Shoot that names another one is never changed or deleted."""
    RUNTIME_GENERATION: Final = "infrastructuremanager.kyma-project.io/runtime-generation"
    """The generation of the Runtime at the last patch of the Shoot."""
    LICENCE_TYPE: Final = "infrastructuremanager.kyma-project.io/licence-type"
    DELETION: Final = "confirmation.gardener.cloud/deletion"
    """Gardener requires `true` before a Shoot may be deleted."""
    FORCE_DELETION: Final = "confirmation.gardener.cloud/force-deletion"
    """With `true` Gardener abandons resources that it cannot clean up. It admits the annotation only after a deletion
    failed."""


class ShootLabel:
    """Label keys of a Shoot."""

    ACCOUNT: Final = "account"
    """The global account of the Runtime at the last patch."""
    SUBACCOUNT: Final = "subaccount"


class RequiredLabels:
    """Labels that every Runtime must have."""

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
    """The labels in the order of the checks."""
