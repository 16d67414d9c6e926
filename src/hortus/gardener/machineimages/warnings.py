"""Warnings about a CloudProfile: regions in which a machine type has no image of a version that says it fits."""

from __future__ import annotations

from collections.abc import Iterator

from hortus.gardener.machineimages.capabilities import ARCHITECTURE, is_compatible, of_machine
from hortus.gardener.machineimages.profile import PROVIDER, CoreVersion, ImageProfile
from hortus.gardener.machineimages.selection import AmbiguousImage, ImageNotFound, MachineImageRequest, select_image


def warnings_of(profile: ImageProfile) -> list[str]:
    """A sentence for each architecture, image version and region without an image, in the order of the profile."""
    if profile.type != PROVIDER or profile.provider_config is None:
        return []
    return list(dict.fromkeys(_warnings(profile)))


def _warnings(profile: ImageProfile) -> Iterator[str]:
    definitions = profile.definitions
    for machine_type in profile.machine_types:
        machine = of_machine(machine_type.capabilities, definitions, machine_type.architecture)
        for image in profile.machine_images:
            for version in image.versions:
                if not machine_type.usable or not _is_offered(version, machine, profile):
                    continue
                for region in sorted(_regions(profile)):
                    wanted = MachineImageRequest(
                        name=image.name,
                        version=version.version,
                        region=region,
                        machine_type=machine_type.name,
                    )
                    yield from _warning(profile, wanted, machine[ARCHITECTURE][0])


def _warning(profile: ImageProfile, wanted: MachineImageRequest, architecture: str) -> Iterator[str]:
    named = f"machine image {wanted.name} {wanted.version}"
    try:
        select_image(profile, wanted)
    except ImageNotFound:
        yield f"{named} has no image for architecture {architecture} in region {wanted.region}"
    except AmbiguousImage as error:
        yield str(error)


def _is_offered(version: CoreVersion, machine: object, profile: ImageProfile) -> bool:
    """Reports whether the shared part says that a version fits a machine type."""
    assert isinstance(machine, dict)
    if profile.machine_capabilities and version.capability_flavors:
        return any(is_compatible(one, machine, profile.definitions) for one in version.capability_flavors)
    return not set(version.made_for).isdisjoint(machine[ARCHITECTURE])


def _regions(profile: ImageProfile) -> set[str]:
    """The regions of the profile, and those that its provider configuration maps under another name."""
    return {one.name for one in profile.regions}
