"""ClusterProfile: one object for each cluster of the fleet, and every name around it.

The kind is SIG Multicluster's (kubernetes-sigs/cluster-inventory-api, KEP-4322): other managers write it too, and Argo
CD, MultiKueue and schedulers read it.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from hortus.kube.objects import Object, Resource
from hortus.schema import AGE, Column, Condition, Fields, Format, Kind, ListMap, ValidationRule, kind

GROUP: Final = "multicluster.x-k8s.io"
VERSION: Final = "v1alpha1"


class ClusterManagerRef(Fields, frozen=True):
    """The manager of a cluster."""

    __rules__ = (ValidationRule("self == oldSelf", message="ClusterManager is immutable"),)

    name: str
    """Its name."""


class ClusterProfileSpec(Fields, frozen=True):
    """The cluster."""

    cluster_manager: ClusterManagerRef
    """The manager that owns the profile."""
    display_name: str = ""
    """A name for people."""


class ClusterVersion(Fields, frozen=True):
    """Versions of the cluster."""

    kubernetes: str = ""
    """The Kubernetes version."""


class ProfileProperty(Fields, frozen=True):
    """A fact about the cluster."""

    name: Annotated[str, Meta(min_length=1, max_length=253)]
    """Its name: that of a ClusterProperty (KEP-2149), or one of the manager's."""
    value: Annotated[str, Meta(min_length=1, max_length=1024)]
    """Its value."""
    last_observed_time: Annotated[str, Format("date-time")] | None = None
    """When it was observed in the cluster."""


class AccessProvider(Fields, frozen=True):
    """A way into the cluster, for clients that have the provider's credential plugin."""

    name: str
    """Name of the provider."""
    cluster: Object
    """The cluster as in a kubeconfig: server, certificate-authority-data, and the plugin's settings as an extension."""


class ClusterProfileStatus(Fields, frozen=True):
    """The cluster as observed."""

    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """Joined, ControlPlaneHealthy and CredentialsFresh."""
    version: ClusterVersion | None = None
    """Versions of the cluster."""
    properties: Annotated[tuple[ProfileProperty, ...], ListMap("name")] = ()
    """Facts about the cluster."""
    access_providers: Annotated[tuple[AccessProvider, ...], ListMap("name")] = ()
    """Ways into the cluster."""


@kind(
    group=GROUP,
    version=VERSION,
    status=True,
    columns=(
        Column("DISPLAY NAME", ".spec.displayName"),
        Column("VERSION", ".status.version.kubernetes"),
        Column("HEALTHY", '.status.conditions[?(@.type=="ControlPlaneHealthy")].status'),
        AGE,
    ),
)
class ClusterProfile(Kind, frozen=True):
    """A cluster of the fleet."""

    spec: ClusterProfileSpec
    """The cluster."""
    status: ClusterProfileStatus = ClusterProfileStatus()
    """The cluster as observed."""


class ProfileCondition:
    """Types of the conditions of a ClusterProfile."""

    JOINED: Final = "Joined"
    CONTROL_PLANE_HEALTHY: Final = "ControlPlaneHealthy"
    """Predefined by the Cluster Inventory API."""
    CREDENTIALS_FRESH: Final = "CredentialsFresh"


class Property:
    """Names of properties that Hortus writes."""

    NODES: Final = "nodes.fleet.hortus.dev"
    ZONES: Final = "zones.fleet.hortus.dev"
    HIBERNATED: Final = "hibernated.fleet.hortus.dev"
    """true or false."""
    MAINTENANCE_WINDOW: Final = "maintenance-window.fleet.hortus.dev"
    """Begin and end as a Shoot's maintenance.timeWindow has them: 220000+0100-230000+0100. Every day, unless days
    follow: 220000+0100-230000+0100 Sat,Sun."""


class ProfileLabel:
    """Labels of ClusterProfiles, by which stages select."""

    CLUSTER_MANAGER: Final = "x-k8s.io/cluster-manager"
    REGION: Final = "topology.kubernetes.io/region"
    PROVIDER: Final = "fleet.hortus.dev/provider"
    KUBERNETES: Final = "fleet.hortus.dev/kubernetes"
    """The minor version, such as 1.33."""
    PURPOSE: Final = "fleet.hortus.dev/purpose"


MANAGER: Final = "hortus"
"""The name of this manager, in profiles that it writes."""

CLUSTER_PROFILES: Final = Resource(GROUP, VERSION, "clusterprofiles", "ClusterProfile")
