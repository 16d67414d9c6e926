"""Cluster: the Shoot, its Seed and its CloudProfile, as gardenlet leaves them in the seed for extensions to read.

It is named like the Shoot's namespace there, which is its technical ID.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from hortus.domains.garden.kinds.common import EXTENSIONS_GROUP, VERSION, GardenOperation
from hortus.kube.objects import Resource
from hortus.schema import Fields, Kind, ObjectMeta, kind

_SHORT: Final = re.compile(r"^shoot--?")


def short_id(technical_id: str) -> str:
    """The technical ID without its prefix; old clusters have one dash after it."""
    return _SHORT.sub("", technical_id, count=1)


class ShootExtension(Fields, frozen=True):
    """One entry of spec.extensions."""

    type: str
    """Type of the extension."""
    provider_config: Any = None
    """Configuration of the extension, which its own admission judges: an object, or whatever else was written."""
    disabled: bool | None = None
    """True where an extension that is on for all Shoots is off for this one."""


class ReferencedResource(Fields, frozen=True):
    """The Secret or ConfigMap of one entry of spec.resources."""

    kind: str = ""
    """Secret or ConfigMap."""
    name: str = ""
    """Name in the project's namespace of the garden."""
    api_version: str = ""
    """v1."""


class ShootResource(Fields, frozen=True):
    """One entry of spec.resources, which gardenlet copies into the seed."""

    name: str
    """Name by which configurations of extensions refer to it."""
    resource_ref: ReferencedResource = ReferencedResource()
    """The object."""


class SnapshotNetworking(Fields, frozen=True):
    """The networks of a Shoot."""

    nodes: str | None = None
    """CIDR of the nodes; a workerless Shoot has none."""
    pods: str | None = None
    """CIDR of the pods."""
    services: str | None = None
    """CIDR of the services."""


class SnapshotProvider(Fields, frozen=True):
    """The infrastructure of a Shoot."""

    type: str = ""
    """Type, such as aws."""
    workers: tuple[dict[str, Any], ...] | None = None
    """Worker pools; none in a workerless Shoot."""
    infrastructure_config: dict[str, Any] | None = None
    """Configuration of the infrastructure, in the provider's own form."""


class SnapshotHibernation(Fields, frozen=True):
    """The hibernation that is wanted."""

    enabled: bool | None = None
    """True where the Shoot is to sleep."""


class SnapshotControlPlane(Fields, frozen=True):
    """The control plane that is wanted."""

    high_availability: dict[str, Any] | None = None
    """Failures that it survives; none where it has one replica of each part."""


class SnapshotDns(Fields, frozen=True):
    """The DNS of a Shoot."""

    domain: str | None = None
    """Domain of the Shoot; its kube-apiserver is api.<domain>."""


class SnapshotSpec(Fields, frozen=True):
    """The fields of a Shoot's spec that extensions read."""

    region: str = ""
    """Region."""
    extensions: tuple[ShootExtension, ...] | None = None
    """Extensions that the Shoot asks for."""
    resources: tuple[ShootResource, ...] | None = None
    """Secrets and ConfigMaps that configurations refer to."""
    networking: SnapshotNetworking | None = None
    """Networks."""
    provider: SnapshotProvider = SnapshotProvider()
    """Infrastructure."""
    hibernation: SnapshotHibernation | None = None
    """Hibernation."""
    control_plane: SnapshotControlPlane | None = None
    """Control plane."""
    exposure_class_name: str | None = None
    """Name of the ExposureClass."""
    dns: SnapshotDns | None = None
    """DNS."""


class SnapshotAddress(Fields, frozen=True):
    """One address of the kube-apiserver."""

    name: str = ""
    """external, internal, unmanaged, wildcard-tls-seed-bound or service-account-issuer."""
    url: str = ""
    """Address with its scheme."""


class ReportedNetworking(Fields, frozen=True):
    """The networks that a Shoot was given."""

    nodes: tuple[str, ...] | None = None
    """CIDRs of the nodes."""
    pods: tuple[str, ...] | None = None
    """CIDRs of the pods."""
    services: tuple[str, ...] | None = None
    """CIDRs of the services."""


class SnapshotStatus(Fields, frozen=True):
    """The fields of a Shoot's status that extensions read."""

    technical_id: str = msgspec.field(default="", name="technicalID")
    """Name of its namespace in the seed."""
    advertised_addresses: tuple[SnapshotAddress, ...] | None = None
    """Addresses of its kube-apiserver."""
    last_operation: GardenOperation | None = None
    """Its operation."""
    hibernated: bool | None = None
    """True while it sleeps."""
    cluster_identity: str = ""
    """Identity of the cluster."""
    uid: str = ""
    """Uid of the cluster, which stays when its Shoot moves."""
    networking: ReportedNetworking | None = None
    """Networks, once the infrastructure is there."""


class GardenShoot(Fields, frozen=True):
    """A Shoot, as far as extensions read it."""

    metadata: ObjectMeta = ObjectMeta()
    """Metadata."""
    spec: SnapshotSpec = SnapshotSpec()
    """Spec."""
    status: SnapshotStatus = SnapshotStatus()
    """Status."""

    @property
    def is_hibernated(self) -> bool:
        """True for a Shoot that is to sleep, or sleeps."""
        wanted = self.spec.hibernation is not None and bool(self.spec.hibernation.enabled)
        return wanted or bool(self.status.hibernated)

    @property
    def is_highly_available(self) -> bool:
        """True where the control plane has several replicas of its parts."""
        return self.spec.control_plane is not None and bool(self.spec.control_plane.high_availability)

    @property
    def is_workerless(self) -> bool:
        """True for a Shoot without nodes."""
        return not self.spec.provider.workers

    def extension(self, type_: str) -> tuple[int, ShootExtension] | None:
        """The entry of spec.extensions of a type, with its index."""
        for index, one in enumerate(self.spec.extensions or ()):
            if one.type == type_:
                return index, one
        return None


class SeedNetworks(Fields, frozen=True):
    """The networks of a seed."""

    nodes: str | None = None
    """CIDR of the nodes, where it is known."""
    pods: str | None = None
    """CIDR of the pods."""
    services: str | None = None
    """CIDR of the services."""


class SeedIngress(Fields, frozen=True):
    """The ingress of a seed."""

    domain: str = ""
    """Domain under which dashboards of Shoots are reached."""


class SeedFacts(Fields, frozen=True):
    """The fields of a Seed's spec that extensions read."""

    networks: SeedNetworks = SeedNetworks()
    """Networks."""
    ingress: SeedIngress | None = None
    """Ingress; none in a seed without one."""


class GardenSeed(Fields, frozen=True):
    """A Seed, as far as extensions read it."""

    metadata: ObjectMeta = ObjectMeta()
    """Metadata."""
    spec: SeedFacts = SeedFacts()
    """Spec."""


class SeedClusterSpec(Fields, frozen=True):
    """Copies of the garden's objects."""

    shoot: GardenShoot = GardenShoot()
    """The Shoot."""
    seed: GardenSeed | None = None
    """The Seed."""
    cloud_profile: dict[str, Any] | None = None
    """The CloudProfile."""


@kind(group=EXTENSIONS_GROUP, version=VERSION, name="Cluster", scope="Cluster")
class SeedCluster(Kind, frozen=True):
    """Copies of the garden's objects about one Shoot."""

    spec: SeedClusterSpec = SeedClusterSpec()
    """The copies."""

    @property
    def shoot(self) -> GardenShoot:
        """The Shoot."""
        return self.spec.shoot

    @property
    def seed(self) -> GardenSeed:
        """The Seed; empty where gardenlet has not written it."""
        return self.spec.seed or GardenSeed()

    @property
    def technical_id(self) -> str:
        """Name of the Shoot's namespace in the seed."""
        return self.metadata.name

    @property
    def short_id(self) -> str:
        """The technical ID without its prefix, as it stands in names of hosts."""
        return short_id(self.metadata.name)


SEED_CLUSTERS: Final = Resource(EXTENSIONS_GROUP, VERSION, "clusters", "Cluster", namespaced=False)
