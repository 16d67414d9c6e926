"""The image of a worker pool: from the CloudProfile, else from the record that the Worker keeps.

Where the CloudProfile names an image without a region, it is for amd64 alone, as the provider's documentation says; the
Go system takes it for every architecture that has another region, so that an arm64 machine would boot an amd64 image.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from hortus.gardener.machineimages.capabilities import (
    AMD64,
    ARCHITECTURE,
    Capabilities,
    CapabilityDefinition,
    is_compatible,
    of_machine,
    preferred,
)
from hortus.gardener.machineimages.profile import ImageProfile, ProviderFlavor, ProviderVersion, RegionImage
from hortus.schema import Fields


class ImageNotFound(ValueError):
    """No image fits a pool; the message names image, version, architecture, region and fix."""


class AmbiguousImage(ValueError):
    """Several images fit a pool equally well; the message names them."""


class MachineImageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The image that a pool wants, and the machines it is for."""

    name: str
    version: str
    region: str
    machine_type: str = ""
    architecture: str = ""
    """That of the pool; empty: amd64."""


class MachineImageChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The image that a pool gets."""

    name: str
    version: str
    architecture: str
    id: str = ""
    """Wins over `image`."""
    image: str = ""
    capabilities: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    @property
    def of_class(self) -> dict[str, str]:
        """The field of a MachineClass that names the image."""
        return {"imageID": self.id} if self.id else {"imageName": self.image}


class KeptImage(Fields, frozen=True):
    """An image in the status of a Worker, so that a pool whose version left the CloudProfile can be reconciled."""

    name: str = ""
    version: str = ""
    image: str = ""
    id: str = ""
    architecture: str = ""
    capabilities: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


def select_image(
    profile: ImageProfile, wanted: MachineImageRequest, kept: Sequence[KeptImage] = ()
) -> MachineImageChoice:
    """The image of a pool. Raises ImageNotFound, AmbiguousImage."""
    definitions = profile.definitions
    machine_type = profile.machine_type(wanted.machine_type)
    given: Capabilities = machine_type.capabilities if machine_type is not None else {}
    architecture = wanted.architecture or (machine_type.architecture if machine_type is not None else "")
    machine = of_machine(given, definitions, architecture)
    architecture = machine[ARCHITECTURE][0]
    fitting = [one for one in _offered(profile, wanted) if is_compatible(one.capabilities, machine, definitions)]
    found = preferred(fitting, lambda one: one.capabilities, definitions)
    if len(found) > 1:
        names = ", ".join(_image_of(one) for one in found)
        raise AmbiguousImage(
            f"machine image {wanted.name} {wanted.version} in region {wanted.region}: {names} fit machine type "
            f"{wanted.machine_type} equally well: give one of them capabilities that the others lack"
        )
    if found:
        (flavor,) = found
        identity = flavor.regions[0].id if flavor.regions else ""
        return MachineImageChoice(
            name=wanted.name,
            version=wanted.version,
            architecture=architecture,
            id=identity,
            image=flavor.image,
            capabilities=dict(flavor.capabilities),
        )
    return _from_record(profile, wanted, kept, machine, architecture)


def flavors_of(version: ProviderVersion) -> Iterator[ProviderFlavor]:
    """A version as flavors, in whichever of its three forms it is written."""
    if version.capability_flavors:
        yield from version.capability_flavors
        return
    groups: dict[str, list[RegionImage]] = {}
    for region in version.regions:
        groups.setdefault(region.architecture or AMD64, []).append(region)
    if version.image:
        groups.setdefault(AMD64, [])
    for architecture, regions in groups.items():
        image = version.image if architecture == AMD64 else ""
        yield ProviderFlavor(capabilities={ARCHITECTURE: (architecture,)}, image=image, regions=tuple(regions))


def _offered(profile: ImageProfile, wanted: MachineImageRequest) -> Iterator[ProviderFlavor]:
    """The flavors of the image that a region has, each with the mapping of that region alone."""
    config = profile.provider_config
    for image in config.machine_images if config is not None else ():
        for version in image.versions:
            if (image.name, version.version) == (wanted.name, wanted.version):
                yield from _in_region(flavors_of(version), wanted.region)


def _in_region(flavors: Iterable[ProviderFlavor], region: str) -> Iterator[ProviderFlavor]:
    for flavor in flavors:
        # The last of several mappings of one region counts.
        here = [one for one in flavor.regions if one.name == region][-1:]
        if here or flavor.image:
            yield msgspec.structs.replace(flavor, regions=tuple(here))


def _from_record(
    profile: ImageProfile,
    wanted: MachineImageRequest,
    kept: Sequence[KeptImage],
    machine: Capabilities,
    architecture: str,
) -> MachineImageChoice:
    for one in kept:
        if (one.name, one.version) == (wanted.name, wanted.version) and _fits(one, profile, machine, architecture):
            return MachineImageChoice(
                name=one.name,
                version=one.version,
                architecture=architecture,
                id=one.id,
                image=one.image,
                capabilities={name: tuple(values) for name, values in _recorded(one).items()},
            )
    raise ImageNotFound(
        f"machine image {wanted.name} {wanted.version} has no image for architecture {architecture} in region "
        f"{wanted.region}: add the region with its id to providerConfig.machineImages of the CloudProfile, or choose "
        "another version or machine type"
    )


def _fits(one: KeptImage, profile: ImageProfile, machine: Capabilities, architecture: str) -> bool:
    if profile.machine_capabilities:
        return is_compatible(_recorded(one), machine, profile.definitions)
    return architecture in _recorded(one).get(ARCHITECTURE, (AMD64,))


def _recorded(one: KeptImage) -> Capabilities:
    """The capabilities of a kept image, also of one in the old form, where no architecture means amd64."""
    return one.capabilities or {ARCHITECTURE: (one.architecture or AMD64,)}


def kept_images(
    definitions: Sequence[CapabilityDefinition], used: Iterable[MachineImageChoice], before: Iterable[KeptImage] = ()
) -> list[KeptImage]:
    """The images that the pools use now, in the form that the CloudProfile has, by name and version.

    `definitions` are those that the profile itself has. An image of `before` that no pool uses is dropped, and one that
    is converted to the other form keeps its name in OpenStack.
    """
    named = {(one.name, one.version, _made_for(_recorded(one))): one.image for one in before}
    found: dict[tuple[str, str, str], KeptImage] = {}
    for choice in used:
        capabilities = choice.capabilities or {ARCHITECTURE: (choice.architecture,)}
        key = (choice.name, choice.version, _made_for(capabilities))
        found[key] = KeptImage(
            name=choice.name,
            version=choice.version,
            id=choice.id,
            image=choice.image or named.get(key, ""),
            architecture="" if definitions else choice.architecture,
            capabilities=dict(capabilities) if definitions else {},
        )
    return [found[key] for key in sorted(found)]


def _made_for(capabilities: Capabilities) -> str:
    return ";".join(f"{name}={','.join(values)}" for name, values in sorted(capabilities.items()))


def _image_of(flavor: ProviderFlavor) -> str:
    return flavor.regions[0].id if flavor.regions else flavor.image


__all__ = [
    "AmbiguousImage",
    "ImageNotFound",
    "KeptImage",
    "MachineImageChoice",
    "MachineImageRequest",
    "flavors_of",
    "kept_images",
    "select_image",
]
