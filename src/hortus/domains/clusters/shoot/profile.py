"""A Runtime against the garden's CloudProfile: everything that the garden does not offer is refused beforehand.

The present choices of a live pool stay allowed after they left the profile, as in Gardener: a cluster must remain
changeable after its image was withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.pools import PoolFields, PoolImage, PoolVolume, converted
from hortus.domains.clusters.shoot import versions
from hortus.domains.clusters.shoot.kubernetes import version
from hortus.domains.clusters.shoot.live import LiveShoot
from hortus.domains.clusters.shoot.pools import path_of
from hortus.domains.clusters.shoot.workers import created_pools, patched_pools
from hortus.domains.clusters.types import Runtime
from hortus.kube import Object
from hortus.kube.objects import shaped
from hortus.schema import FieldError, Fields
from hortus.schema.problems import invalid, not_supported

_OPENSTACK: Final = "openstack"
_IMAGE_PARTS: Final = ("type", "machineCapabilities", "machineTypes", "providerConfig")
_SHOWN: Final = 20
"""Most alternatives that a message lists."""


class OfferedVersion(Fields, frozen=True):
    version: str


class OfferedKubernetes(Fields, frozen=True):
    versions: tuple[OfferedVersion, ...] = ()


class OfferedImage(Fields, frozen=True):
    name: str
    versions: tuple[OfferedVersion, ...] = ()


class OfferedMachine(Fields, frozen=True):
    name: str
    architecture: str = "amd64"
    usable: bool = True


class OfferedVolume(Fields, frozen=True):
    name: str
    usable: bool = True


class OfferedZone(Fields, frozen=True):
    name: str
    unavailable_machine_types: tuple[str, ...] = ()


class OfferedRegion(Fields, frozen=True):
    name: str
    zones: tuple[OfferedZone, ...] = ()


class Offer(Fields, frozen=True):
    """The fields of a CloudProfile's spec that are compared with Runtimes."""

    kubernetes: OfferedKubernetes = OfferedKubernetes()
    machine_images: tuple[OfferedImage, ...] = ()
    machine_types: tuple[OfferedMachine, ...] = ()
    regions: tuple[OfferedRegion, ...] = ()
    type: str = ""
    volume_types: tuple[OfferedVolume, ...] = ()
    image_source: Object = msgspec.field(default_factory=dict)
    """The parts of OpenStack's spec by which machine images are found in a region, as they are; else empty."""


class _ImageSource(Fields, frozen=True):
    spec: Object = msgspec.field(default_factory=dict)


class _Profile(Fields, frozen=True):
    spec: Offer = Offer()


def profile_outline(profile: Object) -> Object:
    """The part of a CloudProfile that a cache keeps: enough of its metadata, and its `Offer` as `offer`.

    The offer is None where the profile has another shape: then nothing is compared, and the garden decides.
    """
    metadata, found = profile["metadata"], shaped(profile, _Profile)
    kept = {name: metadata[name] for name in ("name", "uid", "resourceVersion") if name in metadata}
    return {"metadata": kept, "offer": _with_images(found.spec, profile) if found is not None else None}


def kept_offer(kept: Object | None) -> Offer | None:
    """The offer in what a cache keeps of a CloudProfile."""
    offer: Offer | None = kept["offer"] if kept is not None else None
    return offer


def offer_of(profile: Object) -> Offer:
    """The offer of a whole CloudProfile. Raises NotReadable."""
    return _with_images(converted(profile, _Profile, "CloudProfile").spec, profile)


def _with_images(offer: Offer, profile: Object) -> Offer:
    """The offer with the source of its images. Values of this field that a CloudProfile has are dropped."""
    found = shaped(profile, _ImageSource) if offer.type == _OPENSTACK else None
    if found is None or not found.spec.get("providerConfig"):
        return msgspec.structs.replace(offer, image_source={}) if offer.image_source else offer
    kept = {part: found.spec[part] for part in _IMAGE_PARTS if part in found.spec}
    return msgspec.structs.replace(offer, image_source=kept)


def profile_problems(
    runtime: Runtime, config: Configuration, offer: Offer, live: LiveShoot | None = None
) -> list[FieldError]:
    """Values of a valid Runtime that the offer of a CloudProfile does not have."""
    shoot = runtime.wanted.shoot
    if offer.type and offer.type != shoot.provider.type:
        return [not_supported("spec.shoot.provider.type", shoot.provider.type, [offer.type])]
    problems = list(_version_problems(runtime, config, offer, live))
    regions = {region.name: region for region in offer.regions}
    if shoot.region not in regions:
        return [*problems, _unsupported("spec.shoot.region", shoot.region, regions)]
    return problems + list(_pools(runtime, config, offer, regions[shoot.region], live))


def _version_problems(
    runtime: Runtime, config: Configuration, offer: Offer, live: LiveShoot | None
) -> Iterator[FieldError]:
    offered = [entry.version for entry in offer.kubernetes.versions]
    wanted = version(runtime, config, live)
    running = live.spec.kubernetes.version if live is not None else ""
    if wanted != running and not any(versions.covers(wanted, one) for one in offered):
        yield _unsupported("spec.shoot.kubernetes.version", wanted, versions.ordered(offered))


def _pools(
    runtime: Runtime, config: Configuration, offer: Offer, region: OfferedRegion, live: LiveShoot | None
) -> Iterator[FieldError]:
    created = created_pools(runtime, config)
    running = live.spec.provider.pools if live is not None else []
    present = {pool.fields.name: pool.fields for pool in running}
    place = {pool.fields.name: index for index, pool in enumerate(created)}
    for part in patched_pools(runtime, config, running) if live is not None else created:
        pool = part.fields
        path, before = path_of(place[pool.name]), present.get(pool.name)
        yield from _zone_problems(path, pool, before, region)
        yield from _machine_problems(path, pool, before, offer, region)
        yield from _image_problems(
            path, pool.machine.image, before.machine.image if before is not None else None, offer
        )
        yield from _region_problems(path, pool, before, runtime.wanted.shoot.region, offer)
        yield from _volume_problems(path, pool.volume, before.volume if before is not None else None, offer)


def _zone_problems(
    path: str, pool: PoolFields, before: PoolFields | None, region: OfferedRegion
) -> Iterator[FieldError]:
    offered = [zone.name for zone in region.zones]
    known = {*offered, *(before.zones if before is not None else ())}
    for index, zone in enumerate(pool.zones):
        if offered and zone not in known:
            yield _unsupported(f"{path}.zones[{index}]", zone, offered)


def _machine_problems(
    path: str, pool: PoolFields, before: PoolFields | None, offer: Offer, region: OfferedRegion
) -> Iterator[FieldError]:
    types = {one.name: one for one in offer.machine_types if one.usable}
    wanted = pool.machine.type
    if before is not None and wanted == before.machine.type:
        return
    if wanted not in types:
        yield _unsupported(f"{path}.machine.type", wanted, types)
        return
    lacking = {zone.name for zone in region.zones if wanted in zone.unavailable_machine_types}
    without = [zone for zone in pool.zones if zone in lacking]
    if without:
        yield invalid(f"{path}.machine.type", wanted, f"not available in zone {', '.join(without)}")
    made_for, architecture = types[wanted].architecture, pool.machine.architecture
    if architecture and architecture != made_for:
        yield not_supported(f"{path}.machine.architecture", architecture, [made_for])


def _image_problems(path: str, wanted: PoolImage, running: PoolImage | None, offer: Offer) -> Iterator[FieldError]:
    if running is not None and (wanted.name, wanted.version) == (running.name, running.version):
        return
    images = {image.name: image for image in offer.machine_images}
    if wanted.name not in images:
        yield _unsupported(f"{path}.machine.image.name", wanted.name, images)
        return
    offered = [entry.version for entry in images[wanted.name].versions]
    if wanted.version not in offered:
        yield _unsupported(f"{path}.machine.image.version", wanted.version, versions.ordered(offered))


def _region_problems(
    path: str, pool: PoolFields, before: PoolFields | None, region: str, offer: Offer
) -> Iterator[FieldError]:
    """An image that OpenStack does not have in the region for machines of the pool, such as one for arm64."""
    machine = pool.machine
    if before is not None and (machine.type, machine.image) == (before.machine.type, before.machine.image):
        return
    if not (offer.image_source and _is_offered(machine.image, offer)):
        return
    # Few fleets run on OpenStack: the others do not load this.
    from hortus.gardener.machineimages import (
        AmbiguousImage,
        ImageNotFound,
        MachineImageRequest,
        UnreadableProfile,
        profile_of,
        select_image,
    )

    wanted = MachineImageRequest(
        name=machine.image.name,
        version=machine.image.version,
        region=region,
        machine_type=machine.type,
        architecture=machine.architecture or "",
    )
    try:
        select_image(profile_of({"spec": offer.image_source}), wanted)
    except (ImageNotFound, AmbiguousImage) as error:
        yield invalid(f"{path}.machine.image", f"{wanted.name}:{wanted.version}", str(error))
    except UnreadableProfile:
        # The garden decides, as where the rest of the profile has another shape.
        return


def _is_offered(wanted: PoolImage, offer: Offer) -> bool:
    images = (image.versions for image in offer.machine_images if image.name == wanted.name)
    return any(entry.version == wanted.version for versions_ in images for entry in versions_)


def _volume_problems(
    path: str, wanted: PoolVolume | None, before: PoolVolume | None, offer: Offer
) -> Iterator[FieldError]:
    offered = [one.name for one in offer.volume_types if one.usable]
    asked = wanted.type if wanted is not None else None
    if asked == (before.type if before is not None else None):
        return
    if offered and asked and asked not in offered:
        yield _unsupported(f"{path}.volume.type", asked, offered)


def _unsupported(path: str, value: str, offered: Iterable[str]) -> FieldError:
    """Lists the alternatives; of many only the last, which of versions are the newest."""
    names = list(offered)
    return not_supported(path, value, names[-_SHOWN:])
