"""Shoots of the garden: `Shoot`, the fields that this domain reads.

Worker pools, extensions and settings of the provider pass through a patch as they are, whatever Gardener adds to them.
They stay plain objects here, and have properties for the fields that are read of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import field

from hortus.domains.clusters.pools import Pool, converted
from hortus.domains.clusters.types import ControlPlane, OidcConfig
from hortus.kube.objects import Object, Resource, key_of
from hortus.schema import Fields, ObjectMeta

SHOOTS: Final = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")


class Extension(Fields, frozen=True):
    """An extension of a Shoot."""

    type: str = ""
    disabled: bool | None = None
    provider_config: Any = None


class StructuredAuthentication(Fields, frozen=True):
    config_map_name: str = ""


class ShootApiServer(Fields, frozen=True):
    oidc_config: Object | None = None
    structured_authentication: StructuredAuthentication | None = None

    @property
    def oidc(self) -> OidcConfig:
        """The provider that is set by fields of the Shoot; empty without one."""
        return converted(self.oidc_config or {}, OidcConfig, "oidcConfig")


class ShootKubernetes(Fields, frozen=True):
    kube_api_server: ShootApiServer = field(name="kubeAPIServer", default=ShootApiServer())
    version: str = ""


class ShootNetworking(Fields, frozen=True):
    type: str = ""
    nodes: str = ""
    pods: str = ""
    services: str = ""
    ip_families: tuple[str, ...] = ()

    @property
    def ranges(self) -> dict[str, str]:
        """The address ranges by the names of their fields; empty where the garden has not filled one in."""
        return {"nodes": self.nodes, "pods": self.pods, "services": self.services}


class Vpc(Fields, frozen=True):
    id: str | None = None
    name: str | None = None


class Vnet(Fields, frozen=True):
    name: str | None = None
    resource_group: str | None = None


class InfrastructureNetworks(Fields, frozen=True):
    """The networks of the extensions of all providers; each provider uses some of the fields."""

    id: str | None = None
    vpc: Vpc | None = None
    vnet: Vnet | None = None
    zones: tuple[Object, ...] | None = None


class InfrastructureConfig(Fields, frozen=True):
    networks: InfrastructureNetworks | None = None


class ZoneName(Fields, frozen=True):
    """The name of a zone of `networks.zones`; a number on Azure."""

    name: str | int


class ShootProvider(Fields, frozen=True):
    type: str = ""
    workers: tuple[Object, ...] = ()
    infrastructure_config: Object | None = None
    control_plane_config: Object | None = None

    @property
    def pools(self) -> list[Pool]:
        return [Pool(pool) for pool in self.workers]

    @property
    def networks(self) -> InfrastructureNetworks:
        config = converted(self.infrastructure_config or {}, InfrastructureConfig, "infrastructureConfig")
        return config.networks or InfrastructureNetworks()


class DnsProvider(Fields, frozen=True):
    secret_name: str | None = None


class ShootDns(Fields, frozen=True):
    domain: str = ""
    providers: tuple[Object, ...] = ()


class SeedSelector(Fields, frozen=True):
    match_labels: dict[str, str] = field(default_factory=dict)


class ShootSpec(Fields, frozen=True):
    control_plane: Object | None = None
    credentials_binding_name: str | None = None
    dns: ShootDns = ShootDns()
    extensions: tuple[Object, ...] = ()
    kubernetes: ShootKubernetes = ShootKubernetes()
    networking: ShootNetworking = ShootNetworking()
    provider: ShootProvider = ShootProvider()
    purpose: str = ""
    region: str = ""
    resources: list[Object] | None = None
    secret_binding_name: str | None = None
    seed_name: str = ""
    seed_selector: SeedSelector = SeedSelector()

    def extensions_of(self, kind: str) -> Iterator[Extension]:
        """The extensions of a type. Raises NotReadable."""
        found = (converted(one, Extension, "extension") for one in self.extensions)
        return (one for one in found if one.type == kind)


class AdvertisedAddress(Fields, frozen=True):
    url: str = ""


class LastOperation(Fields, frozen=True):
    """The operation that the garden works on, or the last one."""

    type: str = ""
    state: str = ""
    description: str = ""
    progress: int = 0


class LastError(Fields, frozen=True):
    description: str = ""
    codes: tuple[str, ...] = ()


class ShootStatus(Fields, frozen=True):
    advertised_addresses: tuple[AdvertisedAddress, ...] = ()
    last_errors: tuple[LastError, ...] | None = None
    last_operation: LastOperation | None = None
    """None before the garden has begun."""
    observed_generation: int = 0

    @property
    def errors(self) -> tuple[LastError, ...]:
        return self.last_errors or ()


class Shoot(Fields, frozen=True):
    """A Shoot of the garden, as far as its fields are read here."""

    metadata: ObjectMeta
    spec: ShootSpec = ShootSpec()
    status: ShootStatus = ShootStatus()


def shoot_of(document: Object) -> Shoot:
    """The struct of a whole Shoot. Raises NotReadable where a field in use has another type."""
    return converted(document, Shoot, f"shoot {key_of(document).name}")


def tolerance_of(control_plane: Object | None) -> str | None:
    """The failure tolerance of a control plane, of a Runtime or of a Shoot; None without one."""
    availability = converted(control_plane or {}, ControlPlane, "controlPlane").high_availability
    return availability.failure_tolerance.type if availability is not None else None
