"""Gardenlet: a gardenlet by resource, with its Deployment, its configuration and the Seed that it registers.

The kind is Gardener's (gardener, docs/deployment/deploy_gardenlet_via_operator.md). Its name is that of the Seed.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from hortus.domains.garden.kinds.common import GardenCondition
from hortus.kube.objects import Resource
from hortus.schema import (
    AGE,
    Column,
    Fields,
    Format,
    Kind,
    ListMap,
    PreserveUnknown,
    ValidationRule,
    kind,
)

SEEDMANAGEMENT_GROUP: Final = "seedmanagement.gardener.cloud"
SEEDMANAGEMENT_VERSION: Final = "v1alpha1"
GARDEN_NAMESPACE: Final = "garden"
"""The namespace of all Gardenlets, and of gardenlets in their seeds."""
_COUNT: Final = Format("int32")
_Open = Annotated[dict[str, Any], PreserveUnknown()]
_DIGEST: Final = "^sha256:[a-f0-9]{64}$"


class NamedSecret(Fields, frozen=True):
    """A Secret in the namespace of the Gardenlet."""

    name: Annotated[str, Meta(min_length=1, max_length=253)]
    """Its name."""


class ChartRepository(Fields, frozen=True):
    """The place of the chart in an OCI registry."""

    __rules__ = (
        ValidationRule("has(self.ref) || has(self.repository)", message="give ref, or repository with tag or digest"),
    )

    ref: Annotated[str, Meta(min_length=1)] | None = None
    """The whole reference: registry/repository:tag or registry/repository@digest. Wins over the other fields."""
    repository: Annotated[str, Meta(min_length=1)] | None = None
    """Registry and repository."""
    tag: Annotated[str, Meta(min_length=1)] | None = None
    """Tag in the repository."""
    digest: Annotated[str, Meta(pattern=_DIGEST)] | None = None
    """Digest in the repository, sha256: and 64 digits. Wins over the tag."""
    pull_secret_ref: NamedSecret | None = None
    """Secret of type kubernetes.io/dockerconfigjson with the credentials of the registry."""
    ca_bundle_secret_ref: NamedSecret | None = field(default=None, name="caBundleSecretRef")
    """Secret with the certificate authorities of the registry under bundle.crt."""

    @property
    def url(self) -> str:
        """The reference of the chart, without a scheme."""
        if self.ref:
            return self.ref.removeprefix("oci://")
        place = (self.repository or "").removeprefix("oci://")
        if self.digest:
            return f"{place}@{self.digest}"
        return f"{place}:{self.tag}" if self.tag else place


class GardenletHelm(Fields, frozen=True):
    """The chart."""

    oci_repository: ChartRepository
    """The place of the chart in an OCI registry."""


class GardenletImage(Fields, frozen=True):
    """The image of gardenlet, where it is not that of the chart."""

    repository: str | None = None
    """Registry and repository."""
    tag: str | None = None
    """Tag."""
    ref: str | None = None
    """The whole reference, in place of repository and tag."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """Pull policy of the container."""


class GardenletDeployment(Fields, frozen=True):
    """Parameters of the chart."""

    helm: GardenletHelm
    """The chart."""
    replica_count: Annotated[int, Meta(ge=0), _COUNT] = 2
    """Replicas."""
    revision_history_limit: Annotated[int, Meta(ge=0), _COUNT] = 2
    """Old ReplicaSets that are kept."""
    enable_health_probes: bool = True
    """True for liveness and readiness probes."""
    service_account_name: Annotated[str, Meta(min_length=1, max_length=253)] | None = None
    """ServiceAccount of the pods."""
    image: GardenletImage | None = None
    """The image, where it is not that of the chart."""
    resources: _Open | None = None
    """Resources of the container."""
    pod_labels: dict[str, str] | None = None
    """Further labels of the pods."""
    pod_annotations: dict[str, str] | None = None
    """Further annotations of the pods."""
    additional_volumes: tuple[_Open, ...] | None = None
    """Further volumes of the pods."""
    additional_volume_mounts: tuple[_Open, ...] | None = None
    """Further mounts of the container."""
    env: tuple[_Open, ...] | None = None
    """Environment of the container."""
    tolerations: tuple[_Open, ...] | None = None
    """Tolerations of the pods."""
    image_vector_overwrite: str | None = None
    """Images of components that gardenlet deploys, as a document."""
    component_image_vector_overwrite: str | None = None
    """Images of components that these deploy, as a document."""


class GardenletSpec(Fields, frozen=True):
    """A gardenlet and the Seed that it registers."""

    deployment: GardenletDeployment
    """Parameters of the chart."""
    config: Annotated[dict[str, Any], PreserveUnknown()] | None = None
    """The GardenletConfiguration, with the Seed as seedConfig."""
    kubeconfig_secret_ref: NamedSecret | None = None
    """Secret with the kubeconfig of the seed's cluster under kubeconfig, for the first deployment alone: it is deleted
    once the Seed is registered. Without it the gardenlet is deployed into the cluster of Hortus itself."""


class GardenletStatus(Fields, frozen=True):
    """The gardenlet as it was seen last."""

    observed_generation: Annotated[int, Meta(ge=0), Format("int64")] | None = None
    """The generation that the gardenlet applied last."""
    conditions: Annotated[tuple[GardenCondition, ...], ListMap("type")] = ()
    """SeedRegistered, GardenletReconciled and SeedHealthy."""


@kind(
    group=SEEDMANAGEMENT_GROUP,
    version=SEEDMANAGEMENT_VERSION,
    name="Gardenlet",
    status=True,
    columns=(
        Column("REGISTERED", '.status.conditions[?(@.type=="SeedRegistered")].status'),
        Column("RECONCILED", '.status.conditions[?(@.type=="GardenletReconciled")].status'),
        Column("HEALTHY", '.status.conditions[?(@.type=="SeedHealthy")].status'),
        Column("REASON", '.status.conditions[?(@.type=="SeedHealthy")].reason', priority=1),
        AGE,
    ),
)
class Gardenlet(Kind, frozen=True):
    """A gardenlet by resource."""

    spec: GardenletSpec
    """The gardenlet and its Seed."""
    status: GardenletStatus = GardenletStatus()
    """The gardenlet as it was seen last."""

    @property
    def chart(self) -> str:
        """The reference of the chart."""
        return self.spec.deployment.helm.oci_repository.url

    @property
    def operation(self) -> str:
        """The operation that is asked for; empty for none."""
        return (self.metadata.annotations or {}).get(OPERATION, "")


class GardenletOperation:
    """Values of the annotation that asks for an operation."""

    RECONCILE: Final = "reconcile"
    RENEW_KUBECONFIG: Final = "renew-kubeconfig"
    FORCE_REDEPLOY: Final = "force-redeploy"


class GardenletCondition:
    """Types of conditions."""

    SEED_REGISTERED: Final = "SeedRegistered"
    """By the operator: the Seed exists."""
    RECONCILED: Final = "GardenletReconciled"
    """By the gardenlet: it applied this generation to itself."""
    SEED_HEALTHY: Final = "SeedHealthy"
    """By Hortus: the Seed is well since this generation was applied. Its message begins with the generation."""
    REMOVED: Final = "GardenletRemoved"
    """By the operator that decommissions: Progressing since the removal of the gardenlet began."""


OPERATION: Final = "gardener.cloud/operation"
GARDENLETS: Final = Resource(SEEDMANAGEMENT_GROUP, SEEDMANAGEMENT_VERSION, "gardenlets", "Gardenlet")
