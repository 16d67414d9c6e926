"""The parts of a CloudProfile and of its CloudProfileConfig for OpenStack that decide over machine images."""

from __future__ import annotations

from typing import Final

import msgspec

from hortus.gardener.machineimages.capabilities import AMD64, CapabilityDefinition, definitions_of
from hortus.kube.objects import Object
from hortus.schema import Fields

CONFIG_GROUP: Final = "openstack.provider.extensions.gardener.cloud"
CONFIG_VERSION: Final = f"{CONFIG_GROUP}/v1alpha1"
CONFIG_KIND: Final = "CloudProfileConfig"
PROVIDER: Final = "openstack"
_Values = dict[str, tuple[str, ...]]


class UnreadableProfile(ValueError):
    """A CloudProfile has a field of another shape; the message names object, field and type."""


class RegionImage(Fields, frozen=True):
    """The image of one region."""

    name: str = ""
    id: str = ""
    architecture: str = ""


class ProviderFlavor(Fields, frozen=True):
    """The images for machines with certain capabilities."""

    capabilities: _Values = msgspec.field(default_factory=dict)
    image: str = ""
    regions: tuple[RegionImage, ...] = ()


class ProviderVersion(Fields, frozen=True):
    """A version of an image in OpenStack: flavors, or regions by architecture, or an image name."""

    version: str = ""
    image: str = ""
    regions: tuple[RegionImage, ...] = ()
    capability_flavors: tuple[ProviderFlavor, ...] = ()


class ProviderImage(Fields, frozen=True):
    """An image in OpenStack."""

    name: str = ""
    versions: tuple[ProviderVersion, ...] = ()


class LoadBalancerClass(Fields, frozen=True):
    """A class of load balancers."""

    name: str = ""
    purpose: str = ""
    floating_subnet_id: str = msgspec.field(default="", name="floatingSubnetID")
    floating_subnet_name: str = ""
    floating_subnet_tags: str = ""
    floating_network_id: str = msgspec.field(default="", name="floatingNetworkID")
    subnet_id: str = msgspec.field(default="", name="subnetID")


class FloatingPool(Fields, frozen=True):
    """A pool of floating addresses."""

    name: str = ""
    region: str | None = None
    domain: str | None = None
    load_balancer_classes: tuple[LoadBalancerClass, ...] = ()


class LoadBalancerProvider(Fields, frozen=True):
    """A provider of load balancers."""

    name: str = ""
    region: str | None = None


class ProviderConstraints(Fields, frozen=True):
    """The pools and providers that Shoots may use."""

    floating_pools: tuple[FloatingPool, ...] = ()
    load_balancer_providers: tuple[LoadBalancerProvider, ...] = ()


class KeystoneAddress(Fields, frozen=True):
    """The identity service of a region."""

    region: str = ""
    url: str = ""
    ca_cert: str = msgspec.field(default="", name="caCert")


class ProviderProfile(Fields, frozen=True):
    """A CloudProfileConfig."""

    api_version: str = CONFIG_VERSION
    kind: str = CONFIG_KIND
    constraints: ProviderConstraints = ProviderConstraints()
    dns_servers: tuple[str, ...] = ()
    dhcp_domain: str | None = None
    keystone_url: str = msgspec.field(default="", name="keystoneURL")
    keystone_urls: tuple[KeystoneAddress, ...] = msgspec.field(default=(), name="keystoneURLs")
    keystone_ca: str = msgspec.field(default="", name="keystoneCACert")
    machine_images: tuple[ProviderImage, ...] = ()
    server_group_policies: tuple[str, ...] = ()


class CoreVersion(Fields, frozen=True):
    """A version of an image in the part that all providers share."""

    version: str = ""
    architectures: tuple[str, ...] = ()
    capability_flavors: tuple[_Values, ...] = ()

    @property
    def made_for(self) -> tuple[str, ...]:
        """The architectures of a version without flavors."""
        return self.architectures or (AMD64,)


class CoreImage(Fields, frozen=True):
    """An image in the part that all providers share."""

    name: str = ""
    versions: tuple[CoreVersion, ...] = ()


class KnownMachineType(Fields, frozen=True):
    """A machine type."""

    name: str = ""
    architecture: str = ""
    capabilities: _Values = msgspec.field(default_factory=dict)
    usable: bool = True


class Region(Fields, frozen=True):
    """A region."""

    name: str = ""


class ImageProfile(Fields, frozen=True):
    """The spec of a CloudProfile."""

    type: str = ""
    machine_capabilities: tuple[CapabilityDefinition, ...] = ()
    machine_images: tuple[CoreImage, ...] = ()
    machine_types: tuple[KnownMachineType, ...] = ()
    regions: tuple[Region, ...] = ()
    provider_config: ProviderProfile | None = None

    @property
    def definitions(self) -> tuple[CapabilityDefinition, ...]:
        """The capabilities that count, also where the profile defines none."""
        return tuple(definitions_of(self.machine_capabilities))

    def machine_type(self, name: str) -> KnownMachineType | None:
        return next((one for one in self.machine_types if one.name == name), None)


class _CloudProfile(msgspec.Struct):
    spec: ImageProfile = ImageProfile()


def profile_of(cloud_profile: Object) -> ImageProfile:
    """The spec of a CloudProfile. Raises UnreadableProfile."""
    try:
        return msgspec.convert(cloud_profile, _CloudProfile).spec
    except msgspec.ValidationError as error:
        match cloud_profile:
            case {"metadata": {"name": str(name)}}:
                pass
            case _:
                name = "without a name"
        raise UnreadableProfile(f"CloudProfile {name}: {error}") from None
