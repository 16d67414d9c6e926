"""A Shoot of the garden as a conversion reads it: structs of the fields in use, and `raw`, the document as it was sent.

Worker pools, extensions and settings of the provider pass through a patch as they are, whatever Gardener adds to them.
They stay plain objects here; `Pool` pairs such an object with the fields that are read of it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

import msgspec
from msgspec import field

from hortus.domains.clusters.outline import (
    Extension,
    SeedSelector,
    ShootOutline,
    StructuredAuthentication,
    outline_of,
)
from hortus.domains.clusters.types import ControlPlane, OidcConfig, ShootAnnotation
from hortus.engine.typed import NotReadable
from hortus.kube import Object
from hortus.schema import Fields, ObjectMeta

S = TypeVar("S", bound=msgspec.Struct)


class PoolImage(Fields, frozen=True):
    name: str = ""
    version: str = ""


class PoolMachine(Fields, frozen=True):
    type: str
    architecture: str | None = None
    image: PoolImage = PoolImage()


class PoolVolume(Fields, frozen=True):
    size: str
    type: str | None = None


class PoolTaint(Fields, frozen=True):
    effect: str
    key: str


class PoolFields(Fields, frozen=True):
    """The fields that are read of a worker pool, of a Runtime or of a Shoot."""

    name: str
    machine: PoolMachine
    minimum: int = 0
    maximum: int = 0
    data_volumes: tuple[PoolVolume, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None
    taints: tuple[PoolTaint, ...] = ()
    update_strategy: str | None = None
    volume: PoolVolume | None = None
    zones: tuple[str, ...] = ()


class Pool:
    """A worker pool. Its fields raise NotReadable where one has another type."""

    def __init__(self, raw: Object) -> None:
        self.raw = raw
        """The pool as it was written, to be handed on."""

    @cached_property
    def fields(self) -> PoolFields:
        return converted(self.raw, PoolFields, "worker pool")


def converted(raw: object, shape: type[S], name: str) -> S:
    """The struct of a part of a document. Raises NotReadable, which calls the part `name`."""
    try:
        return msgspec.convert(raw, shape)
    except msgspec.ValidationError as error:
        raise NotReadable(f"{name}: {error}") from error


class LiveApiServer(Fields, frozen=True):
    oidc_config: Object | None = None
    structured_authentication: StructuredAuthentication | None = None

    @property
    def oidc(self) -> OidcConfig:
        """The provider that is set by fields of the Shoot; empty without one."""
        return converted(self.oidc_config or {}, OidcConfig, "oidcConfig")


class LiveKubernetes(Fields, frozen=True):
    kube_api_server: LiveApiServer = field(name="kubeAPIServer", default=LiveApiServer())
    version: str = ""


class LiveNetworking(Fields, frozen=True):
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


class LiveProvider(Fields, frozen=True):
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


class LiveSpec(Fields, frozen=True):
    control_plane: Object | None = None
    credentials_binding_name: str | None = None
    extensions: tuple[Object, ...] = ()
    kubernetes: LiveKubernetes = LiveKubernetes()
    networking: LiveNetworking = LiveNetworking()
    provider: LiveProvider = LiveProvider()
    purpose: str = ""
    region: str = ""
    resources: list[Object] | None = None
    secret_binding_name: str | None = None
    seed_selector: SeedSelector = SeedSelector()


class AdvertisedAddress(Fields, frozen=True):
    url: str = ""


class LiveStatus(Fields, frozen=True):
    advertised_addresses: tuple[AdvertisedAddress, ...] = ()


class _Document(Fields, frozen=True):
    metadata: ObjectMeta
    spec: LiveSpec = LiveSpec()
    status: LiveStatus = LiveStatus()


class LiveShoot:
    """A Shoot of the garden. Raises NotReadable where a field in use has another type."""

    def __init__(self, raw: Object) -> None:
        self.raw = raw
        """The whole document: read only."""

    @cached_property
    def _document(self) -> _Document:
        return converted(self.raw, _Document, "Shoot")

    @cached_property
    def outline(self) -> ShootOutline:
        """The facts that decide the next step."""
        return outline_of(self.raw)

    @property
    def metadata(self) -> ObjectMeta:
        return self._document.metadata

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def spec(self) -> LiveSpec:
        return self._document.spec

    @property
    def addresses(self) -> list[str]:
        """The addresses of the API server."""
        return [address.url for address in self._document.status.advertised_addresses]

    @property
    def owner(self) -> str:
        """The id of the Runtime that the Shoot belongs to, by its annotation; empty without one."""
        return self.metadata.annotations.get(ShootAnnotation.RUNTIME_ID, "")

    def extension(self, kind: str) -> Extension | None:
        """The first extension of a type."""
        found = (converted(one, Extension, "extension") for one in self.spec.extensions)
        return next((one for one in found if one.type == kind), None)


def tolerance_of(control_plane: Object | None) -> str | None:
    """The failure tolerance of a control plane, of a Runtime or of a Shoot; None without one."""
    availability = converted(control_plane or {}, ControlPlane, "controlPlane").high_availability
    return availability.failure_tolerance.type if availability is not None else None
