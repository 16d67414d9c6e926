"""ClusterProfile: one object for each cluster of the fleet, and every name around it.

The kind is SIG Multicluster's (kubernetes-sigs/cluster-inventory-api, KEP-4322): other managers write it too, and Argo
CD, MultiKueue and schedulers read it.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from hortus.kube.objects import Object, Resource, shaped
from hortus.schema import (
    AGE,
    Column,
    Condition,
    Fields,
    Format,
    Kind,
    ListMap,
    PreserveUnknown,
    ValidationRule,
    kind,
)

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


class NamedExtension(Fields, frozen=True):
    """Further information about a cluster, under a name."""

    name: str
    """The name."""
    extension: Annotated[Object, PreserveUnknown()]
    """The information."""


class ClusterEndpoint(Fields, frozen=True, rename="kebab"):
    """A cluster as kubeconfigs hold it."""

    server: str
    """URL of its API server."""
    tls_server_name: str = ""
    """Name that the server's certificate must hold, where it is not that of the URL."""
    insecure_skip_tls_verify: bool | None = None
    """Leaves the server's certificate unverified."""
    certificate_authority: str = ""
    """File with the certificate authorities."""
    certificate_authority_data: Annotated[str, Format("byte")] = ""
    """The certificate authorities as PEM. Overrides certificate-authority."""
    proxy_url: str = ""
    """URL of a proxy to the cluster."""
    disable_compression: bool | None = None
    """Asks for responses without compression."""
    extensions: tuple[NamedExtension, ...] = ()
    """Further information; client.authentication.k8s.io/exec holds the settings of the credential plugin."""


class AccessProvider(Fields, frozen=True):
    """A way into the cluster, for clients that have the provider's credential plugin."""

    name: str
    """Name of the provider."""
    cluster: ClusterEndpoint | None = None
    """The cluster as in a kubeconfig, with the plugin's settings as an extension."""


class ClusterProfileStatus(Fields, frozen=True):
    """The cluster as observed."""

    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """Joined, ControlPlaneHealthy, CredentialsFresh and IdentityProven."""
    version: ClusterVersion | None = None
    """Versions of the cluster."""
    properties: Annotated[tuple[ProfileProperty, ...], ListMap("name")] = ()
    """Facts about the cluster."""
    access_providers: Annotated[tuple[AccessProvider, ...], ListMap("name")] = ()
    """Ways into the cluster."""
    credential_providers: Annotated[tuple[AccessProvider, ...], ListMap("name")] = ()
    """Former name of accessProviders; Hortus does not write it."""


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
    IDENTITY_PROVEN: Final = "IdentityProven"


class Property:
    """Names of properties that Hortus writes."""

    UID: Final = "uid.fleet.hortus.dev"
    """The uid of the cluster's namespace kube-system. Of profiles that are not proven to be of one cluster the first
    alone has it."""
    MARK: Final = "mark.fleet.hortus.dev"
    """The digest of the mark in the cluster, which proves its identity when it is reached by another address."""
    NODES: Final = "nodes.fleet.hortus.dev"
    """Number of nodes."""
    ZONES: Final = "zones.fleet.hortus.dev"
    """Zones of the nodes, separated by commas."""
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


class ProfileAnnotation:
    """Annotations of ClusterProfiles that Hortus writes."""

    SOURCES: Final = "fleet.hortus.dev/sources"
    """The objects that name the cluster, as KIND/NAMESPACE/NAME, separated by commas. A source that was found by the
    uid of its cluster has @ and a checksum of its credential behind it: another credential is tried again."""


class SourceLabel:
    """Labels and annotations of Secrets that are sources."""

    KUBECONFIG: Final = "fleet.hortus.dev/kubeconfig"
    """On a Secret: true makes its kubeconfig a cluster of the fleet."""
    NAME: Final = "fleet.hortus.dev/cluster"
    """On such a Secret: the name of the profile. Without it that is the name of the Secret without `kubeconfig`."""
    KEY: Final = "fleet.hortus.dev/key"
    """Annotation on such a Secret: the key of its data. Without it that is config, kubeconfig, value, or the one."""


class ProfileReason:
    """Reasons of the conditions of ClusterProfiles; RemoteState has further ones."""

    JOINED: Final = "Joined"
    CONNECTING: Final = "Connecting"
    NO_KUBECONFIG: Final = "NoKubeconfig"
    LEAVING: Final = "Leaving"
    HIBERNATED: Final = "Hibernated"
    ANSWERS: Final = "ApiServerAnswers"
    SHOOT_HEALTHY: Final = "ShootHealthy"
    SHOOT_UNHEALTHY: Final = "ShootUnhealthy"
    ACCEPTED: Final = "Accepted"
    EXPIRED: Final = "Expired"
    NOT_RENEWED: Final = "NotRenewed"
    MARK_READ: Final = "MarkRead"
    MARK_REFUSED: Final = "MarkRefused"
    UID_REFUSED: Final = "UidRefused"
    IDENTITY_CONFLICT: Final = "IdentityConflict"
    IDENTITY_UNPROVEN: Final = "IdentityUnproven"


PROVIDER: Final = "hortus-secret"
"""Name of the access provider: `hortus credential-plugin` hands out the credential in a Secret."""
PLUGIN_EXTENSION: Final = "client.authentication.k8s.io/exec"
"""Name of the extension whose content a client hands to the credential plugin (KEP-541)."""

MANAGER: Final = "hortus"
"""The name of this manager, in profiles that it writes."""

CLUSTER_PROFILES: Final = Resource(GROUP, VERSION, "clusterprofiles", "ClusterProfile")


class KubeconfigPlace(NamedTuple):
    """The place of a kubeconfig: a key of a Secret on the management cluster."""

    namespace: str
    name: str
    key: str


class _Secret(Fields, frozen=True):
    namespace: str = ""
    name: str = ""
    key: str = ""


class _PluginSettings(Fields, frozen=True):
    secret: _Secret = _Secret()


def secret_of(profile: ClusterProfile) -> KubeconfigPlace | None:
    """The place of a cluster's kubeconfig, by its access provider of ours; None where it has none."""
    for provider in profile.status.access_providers:
        if provider.name != PROVIDER or provider.cluster is None:
            continue
        for one in provider.cluster.extensions:
            found = shaped(one.extension, _PluginSettings)
            if one.name == PLUGIN_EXTENSION and found is not None and found.secret.name:
                return KubeconfigPlace(found.secret.namespace, found.secret.name, found.secret.key)
    return None


def way_of(profile: ClusterProfile) -> ClusterEndpoint | None:
    """The address and authorities of a cluster, by its access provider of ours; None where it has none."""
    return next((one.cluster for one in profile.status.access_providers if one.name == PROVIDER), None)


def is_hibernated(profile: ClusterProfile) -> bool:
    return any(one.name == Property.HIBERNATED and one.value == "true" for one in profile.status.properties)
