"""The kind GardenerCluster, with its labels, annotations and reasons.

Contract: Kyma infrastructure-manager, API group infrastructuremanager.kyma-project.io/v1; see docs/credentials.md.
Reasons and labels are kept to the letter, misspellings included: dashboards and other controllers match on them.
"""

from __future__ import annotations

from typing import Annotated, Final

from hortus.kube.objects import ObjectKey, Resource
from hortus.schema import AGE, Column, Condition, Fields, Kind, ListMap, kind

GROUP: Final = "infrastructuremanager.kyma-project.io"
VERSION: Final = "v1"


class SecretKeyRef(Fields, frozen=True):
    """The place of a kubeconfig: one key of one Secret."""

    name: str
    """Name of the Secret."""
    namespace: str
    """Namespace of the Secret."""
    key: str
    """Key of the Secret's data that holds the kubeconfig."""

    @property
    def object_key(self) -> ObjectKey:
        """The Secret itself."""
        return ObjectKey(self.namespace, self.name)


class Kubeconfig(Fields, frozen=True):
    """The place for the kubeconfig."""

    secret: SecretKeyRef
    """The Secret for the kubeconfig. The controller creates it if it does not exist."""


class ShootRef(Fields, frozen=True):
    """The cluster's Shoot in Gardener."""

    name: str
    """Name of the Shoot, in the namespace of the configured Gardener project."""


class GardenerClusterSpec(Fields, frozen=True):
    """The cluster to connect, and the place for its kubeconfig."""

    kubeconfig: Kubeconfig
    """The place for the kubeconfig."""
    shoot: ShootRef
    """The cluster's Shoot."""


class GardenerClusterStatus(Fields, frozen=True):
    """The state of the kubeconfig."""

    state: str = ""
    """Ready, Processing, Error or Deleting."""
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """Conditions. KubeconfigManagement is true if the kubeconfig is in place; otherwise it has the reason."""


@kind(
    group=GROUP,
    version=VERSION,
    status=True,
    columns=(
        Column("STATE", ".status.state"),
        Column("RUNTIME-ID", r".metadata.labels.kyma-project\.io/runtime-id"),
        Column("SHOOT-NAME", r".metadata.labels.kyma-project\.io/shoot-name"),
        AGE,
    ),
)
class GardenerCluster(Kind, frozen=True):
    """A Gardener cluster whose kubeconfig is kept fresh in a Secret."""

    spec: GardenerClusterSpec
    """The cluster to connect, and the place for its kubeconfig."""
    status: GardenerClusterStatus = GardenerClusterStatus()
    """The state of the kubeconfig."""

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.metadata.namespace, self.metadata.name)

    @property
    def secret(self) -> SecretKeyRef:
        return self.spec.kubeconfig.secret

    @property
    def shoot(self) -> str:
        """The name of its Shoot."""
        return self.spec.shoot.name

    @property
    def is_at_home(self) -> bool:
        """True when its Secret lies in its own namespace."""
        return self.secret.namespace == self.metadata.namespace

    @property
    def condition(self) -> Condition | None:
        """The one condition of the contract."""
        return next((found for found in self.status.conditions if found.type == CONDITION), None)


class State:
    """Values of `status.state`."""

    READY: Final = "Ready"
    PROCESSING: Final = "Processing"
    ERROR: Final = "Error"
    DELETING: Final = "Deleting"


CONDITION: Final = "KubeconfigManagement"
"""The one condition type of a GardenerCluster."""


class Reason:
    """Reasons of the condition, as they stand on the wire."""

    CREATED: Final = "KubeconfigSecretCreated"
    ROTATED: Final = "KubeconfigSecretRotated"
    CHECK_FAILED: Final = "FailedToCheckSecret"
    CREATE_FAILED: Final = "ConditionReasonFailedToCreateSecret"
    UPDATE_FAILED: Final = "FailedToUpdateSecret"
    KUBECONFIG_FAILED: Final = "FailedToGetKubeconfig"
    DELETE_FAILED: Final = "ConditionReasonFailedToDeleteSecret"


MESSAGES: Final = {
    Reason.CREATED: "Secret created successfully.",
    Reason.ROTATED: "Secret rotated successfully.",
    Reason.CHECK_FAILED: "Failed to get secret.",
    Reason.CREATE_FAILED: "Failed to create secret.",
    Reason.UPDATE_FAILED: "Failed to rotate secret.",
    Reason.KUBECONFIG_FAILED: "Failed to get kubeconfig.",
    Reason.DELETE_FAILED: "Unknown condition",
}
"""The message of each reason; failures append ` Error: <error>`."""


class Label:
    """Label keys."""

    INSTANCE_ID: Final = "kyma-project.io/instance-id"
    RUNTIME_ID: Final = "kyma-project.io/runtime-id"
    SHOOT_NAME: Final = "kyma-project.io/shoot-name"
    REGION: Final = "kyma-project.io/region"
    PLATFORM_REGION: Final = "kyma-project.io/platform-region"
    BROKER_PLAN_ID: Final = "kyma-project.io/broker-plan-id"
    BROKER_PLAN_NAME: Final = "kyma-project.io/broker-plan-name"
    GLOBAL_ACCOUNT_ID: Final = "kyma-project.io/global-account-id"
    SUBACCOUNT_ID: Final = "kyma-project.io/subaccount-id"
    PROVIDER: Final = "kyma-project.io/provider"
    KYMA_NAME: Final = "operator.kyma-project.io/kyma-name"
    MANAGED_BY: Final = "operator.kyma-project.io/managed-by"
    INTERNAL: Final = "operator.kyma-project.io/internal"
    CLUSTER_NAME: Final = "operator.kyma-project.io/cluster-name"
    """On a kubeconfig Secret: the name of its GardenerCluster, by which it is found when that is gone."""


SECRET_SELECTOR: Final = Label.SHOOT_NAME
"""Label selector of the Secrets that may be kubeconfig Secrets: the contract finds them by their shoot label."""

FINALIZER: Final = "credentials.hortus.dev/secret"
"""On a GardenerCluster whose Secret could not be found again, or perhaps not deleted, once its cluster is gone."""

HOME: Final = "kcp-system"
"""The namespace in which the Go system has all its objects."""

MANAGER: Final = "infrastructure-manager"
"""The value of the managed-by label."""


class Annotation:
    """Annotation keys."""

    FORCE_ROTATION: Final = "operator.kyma-project.io/force-kubeconfig-rotation"
    """On a GardenerCluster or on its Secret: its presence, whatever its value, forces one rotation."""
    LAST_SYNC: Final = "operator.kyma-project.io/last-sync"
    """On a kubeconfig Secret: when the kubeconfig was written, RFC 3339 in UTC with whole seconds."""
    EXPIRATION: Final = "credentials.hortus.dev/expiration"
    """On a kubeconfig Secret, ours: when the kubeconfig ends as the garden granted it, RFC 3339."""
    CHECKSUM: Final = "credentials.hortus.dev/checksum"
    """On a kubeconfig Secret, ours: of the value we wrote, so that an edit by somebody else is noticed."""
    CLUSTER: Final = "credentials.hortus.dev/cluster"
    """On a kubeconfig Secret, ours: the uid of the Shoot it was made for and the addresses of its API server then, so
    that a cluster that was made again or has moved gets a new kubeconfig."""
    OWNER: Final = "credentials.hortus.dev/owner"
    """On a kubeconfig Secret in another namespace than its GardenerCluster, ours: that one's namespace, name and uid,
    divided by slashes; within one namespace an owner reference says so."""
    SKR_DOMAIN: Final = "skr-domain"
    """On a GardenerCluster: the DNS domain of the Shoot."""


GARDENER_CLUSTERS: Final = Resource(GROUP, VERSION, "gardenerclusters", "GardenerCluster")
