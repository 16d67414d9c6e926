"""A Runtime against the garden's CloudProfile: everything that the garden does not offer is refused beforehand.

The present choices of a live pool stay allowed after they left the profile, as in Gardener: a cluster must remain
changeable after its image was withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.pools import PoolFields, PoolImage, converted
from hortus.domains.clusters.shoot import versions
from hortus.domains.clusters.shoot.kubernetes import version
from hortus.domains.clusters.shoot.live import LiveShoot
from hortus.domains.clusters.shoot.pools import path_of
from hortus.domains.clusters.shoot.workers import created_pools, patched_pools, pools_of
from hortus.domains.clusters.types import Runtime
from hortus.gardener.shoots.checks import quantity_of
from hortus.gardener.shoots.lifecycle import EXPIRED, SUPPORTED, UNAVAILABLE, classification
from hortus.kube import Object
from hortus.kube.constraints import Constraint
from hortus.kube.objects import shaped
from hortus.kube.versions import Version
from hortus.schema import FieldError, Fields
from hortus.schema.problems import invalid, not_supported

_OPENSTACK: Final = "openstack"
_CONTAINERD: Final = "containerd"
_ENDED: Final = (EXPIRED, UNAVAILABLE)
_IMAGE_PARTS: Final = ("type", "machineCapabilities", "machineTypes", "providerConfig")
_SHOWN: Final = 20
"""Most alternatives that a message lists."""


class OfferedRuntime(Fields, frozen=True):
    """A container runtime that an image has."""

    type: str


class OfferedCri(Fields, frozen=True):
    name: str
    container_runtimes: tuple[OfferedRuntime, ...] = ()


class OfferedVersion(Fields, frozen=True):
    """A version of Kubernetes or of an image, and how long it is offered."""

    version: str
    architectures: tuple[str, ...] = ()
    classification: str | None = None
    cri: tuple[OfferedCri, ...] = ()
    expiration_date: str | None = None
    kubelet_version_constraint: str | None = None
    lifecycle: tuple[Object, ...] = ()

    def classification_at(self, now: float) -> str:
        """The classification of the version at a time."""
        stages = {"classification": self.classification, "expirationDate": self.expiration_date}
        return classification({**stages, "lifecycle": self.lifecycle}, now)


class OfferedKubernetes(Fields, frozen=True):
    versions: tuple[OfferedVersion, ...] = ()


class OfferedImage(Fields, frozen=True):
    name: str
    versions: tuple[OfferedVersion, ...] = ()


class OfferedStorage(Fields, frozen=True):
    """The disk of a machine type."""

    type: str = ""
    min_size: str | int | float | None = None


class OfferedMachine(Fields, frozen=True):
    name: str
    architecture: str = "amd64"
    cpu: str | int | float | None = None
    memory: str | int | float | None = None
    storage: OfferedStorage | None = None
    usable: bool = True


class OfferedVolume(Fields, frozen=True):
    name: str
    min_size: str | int | float | None = None
    usable: bool = True


class OfferedZone(Fields, frozen=True):
    name: str
    unavailable_machine_types: tuple[str, ...] = ()
    unavailable_volume_types: tuple[str, ...] = ()


class OfferedLimits(Fields, frozen=True):
    max_nodes_total: int | None = None


class OfferedRegion(Fields, frozen=True):
    name: str
    zones: tuple[OfferedZone, ...] = ()


class Offer(Fields, frozen=True):
    """The fields of a CloudProfile's spec that are compared with Runtimes."""

    kubernetes: OfferedKubernetes = OfferedKubernetes()
    limits: OfferedLimits | None = None
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
    runtime: Runtime, config: Configuration, offer: Offer, live: LiveShoot | None = None, now: float = 0.0
) -> list[FieldError]:
    """Values of a valid Runtime that the offer of a CloudProfile does not have at a time.

    A version that has expired is refused for new clusters and pools. A pool that is there may still be raised to one,
    as in Gardener, whose maintenance does that.
    """
    shoot = runtime.wanted.shoot
    if offer.type and offer.type != shoot.provider.type:
        return [not_supported("spec.shoot.provider.type", shoot.provider.type, [offer.type])]
    running = live.spec.kubernetes.version if live is not None else ""
    wanted = version(runtime, config, live)
    problems = list(
        _version_problems("spec.shoot.kubernetes.version", wanted, running, offer, None if live is not None else now)
    )
    regions = {region.name: region for region in offer.regions}
    if shoot.region not in regions:
        return [*problems, _unsupported("spec.shoot.region", shoot.region, regions)]
    for place in _places(runtime, config, regions[shoot.region], live, now):
        problems += _pool_problems(place, wanted, running, offer)
        problems += _region_problems(place.path, place.pool, place.before, shoot.region, offer)
    return problems + list(_limit_problems(runtime, offer))


class _Place(NamedTuple):
    """A pool at its path in the Runtime, with the one of its name that lives, and the zones of its region."""

    path: str
    pool: PoolFields
    before: PoolFields | None
    raw: Object
    zones: tuple[OfferedZone, ...]
    now: float | None
    """The time by which versions expire; None for a pool that is there."""


def _places(
    runtime: Runtime, config: Configuration, region: OfferedRegion, live: LiveShoot | None, now: float
) -> Iterator[_Place]:
    created = created_pools(runtime, config)
    running = live.spec.provider.pools if live is not None else []
    present = {pool.fields.name: pool.fields for pool in running}
    place = {pool.fields.name: index for index, pool in enumerate(created)}
    for part in patched_pools(runtime, config, running) if live is not None else created:
        pool = part.fields
        before = present.get(pool.name)
        at = None if before is not None else now
        yield _Place(path_of(place[pool.name]), pool, before, part.raw, region.zones, at)


def _pool_problems(place: _Place, wanted: str, running: str, offer: Offer) -> Iterator[FieldError]:
    path, pool, before = place.path, place.pool, place.before
    yield from _zone_problems(place)
    yield from _machine_problems(place, offer)
    yield from _image_problems(place, wanted, offer)
    yield from _volume_problems(place, offer)
    if pool.kubernetes is not None and pool.kubernetes.version:
        had = before.kubernetes.version if before is not None and before.kubernetes is not None else None
        at = f"{path}.kubernetes.version"
        yield from _version_problems(at, pool.kubernetes.version, had or running, offer, place.now)
    yield from _reserved_problems(place, offer)


def _version_problems(path: str, wanted: str, running: str, offer: Offer, now: float | None) -> Iterator[FieldError]:
    """A version that is not offered; `now` is None for a cluster or pool that is there."""
    if wanted == running:
        return
    offered = offer.kubernetes.versions
    if now is not None:
        offered = tuple(one for one in offered if one.classification_at(now) not in _ENDED)
    # The garden chooses of a series, and only what is neither new nor ending.
    known = [one for one in offered if wanted.count(".") > 1 or one.classification_at(now or 0.0) == SUPPORTED]
    if not any(versions.covers(wanted, one.version) for one in known):
        yield _unsupported(path, wanted, versions.ordered(one.version for one in offered))


def _zone_problems(place: _Place) -> Iterator[FieldError]:
    offered = [zone.name for zone in place.zones]
    known = {*offered, *(place.before.zones if place.before is not None else ())}
    for index, zone in enumerate(place.pool.zones):
        if offered and zone not in known:
            yield _unsupported(f"{place.path}.zones[{index}]", zone, offered)


def _machine_problems(place: _Place, offer: Offer) -> Iterator[FieldError]:
    path, machine, before = f"{place.path}.machine", place.pool.machine, place.before
    types = {one.name: one for one in offer.machine_types if one.usable}
    if before is not None and machine.type == before.machine.type:
        return
    if machine.type not in types:
        yield _unsupported(f"{path}.type", machine.type, types)
        return
    lacking = {zone.name for zone in place.zones if machine.type in zone.unavailable_machine_types}
    without = [zone for zone in place.pool.zones if zone in lacking]
    if without:
        yield invalid(f"{path}.type", machine.type, f"not available in zone {', '.join(without)}")
    made_for = types[machine.type].architecture
    if machine.architecture and machine.architecture != made_for:
        yield not_supported(f"{path}.architecture", machine.architecture, [made_for])


def _image_problems(place: _Place, cluster: str, offer: Offer) -> Iterator[FieldError]:
    path, machine, before = f"{place.path}.machine.image", place.pool.machine, place.before
    wanted, running = machine.image, before.machine.image if before is not None else None
    if running is not None and (wanted.name, wanted.version) == (running.name, running.version):
        return
    images = {image.name: image for image in offer.machine_images}
    if wanted.name not in images:
        yield _unsupported(f"{path}.name", wanted.name, images)
        return
    offered = images[wanted.name].versions
    active = [one for one in offered if place.now is None or one.classification_at(place.now) not in _ENDED]
    chosen = next((one for one in offered if one.version == wanted.version), None)
    if chosen is None or chosen not in active:
        yield _unsupported(f"{path}.version", wanted.version, versions.ordered(one.version for one in active))
        return
    types = {one.name: one.architecture for one in offer.machine_types}
    architecture = machine.architecture or types.get(machine.type, "")
    if chosen.architectures and architecture and architecture not in chosen.architectures:
        made_for = ", ".join(chosen.architectures)
        yield invalid(f"{path}.version", wanted.version, f"made for {made_for}, and the machines are {architecture}")
    yield from _node_problems(place, cluster, chosen)


def _node_problems(place: _Place, cluster: str, image: OfferedVersion) -> Iterator[FieldError]:
    """A kubelet or a container runtime that does not run on an image."""
    own = place.pool.kubernetes
    kubelet, allowed = (own.version if own is not None else None) or cluster, image.kubelet_version_constraint
    if allowed and versions.is_version(kubelet) and not Constraint(allowed).allows(Version(kubelet)):
        text = f"does not run a kubelet {kubelet}, only {allowed}"
        yield invalid(f"{place.path}.machine.image.version", image.version, text)
    known = {one.name: {each.type for each in one.container_runtimes} for one in image.cri}
    cri = converted(place.raw.get("cri") or {"name": _CONTAINERD}, OfferedCri, "cri")
    if known and cri.name not in known:
        yield _unsupported(f"{place.path}.cri.name", cri.name, known)
    for index, one in enumerate(cri.container_runtimes if cri.name in known else ()):
        if one.type not in known[cri.name]:
            yield _unsupported(f"{place.path}.cri.containerRuntimes[{index}].type", one.type, known[cri.name])


def _reserved_problems(place: _Place, offer: Offer) -> Iterator[FieldError]:
    """A pool whose kubelet keeps all of a machine for itself."""
    kubelet = place.pool.kubernetes.kubelet if place.pool.kubernetes is not None else None
    reserved = kubelet.kube_reserved if kubelet is not None else None
    machine = next((one for one in offer.machine_types if one.name == place.pool.machine.type), None)
    if reserved is None or machine is None:
        return
    for name, kept, whole in (("cpu", reserved.cpu, machine.cpu), ("memory", reserved.memory, machine.memory)):
        if whole is not None and quantity_of(str(kept)) >= quantity_of(str(whole)):
            path = f"{place.path}.kubernetes.kubelet.kubeReserved.{name}"
            yield invalid(path, kept, f"must be less than the machine has, {whole}")


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


def _volume_problems(place: _Place, offer: Offer) -> Iterator[FieldError]:
    wanted, before = place.pool.volume, place.before
    asked = wanted.type if wanted is not None else None
    if wanted is None or asked is None or not offer.volume_types:
        return
    path, volumes = f"{place.path}.volume", {one.name: one for one in offer.volume_types if one.usable}
    if asked != (before.volume.type if before is not None and before.volume is not None else None):
        lacking = {zone.name for zone in place.zones if asked in zone.unavailable_volume_types}
        without = [zone for zone in place.pool.zones if zone in lacking]
        if asked not in volumes:
            yield _unsupported(f"{path}.type", asked, volumes)
        elif without:
            yield invalid(f"{path}.type", asked, f"not available in zone {', '.join(without)}")
    machine = next((one for one in offer.machine_types if one.name == place.pool.machine.type), None)
    storage = machine.storage if machine is not None else None
    least = [volumes[asked].min_size] if asked in volumes else []
    least += [storage.min_size] if storage is not None and storage.type == asked else []
    for size in (one for one in least if one is not None):
        if quantity_of(wanted.size) < quantity_of(str(size)):
            yield invalid(f"{path}.size", wanted.size, f"must be at least {size}")


def _limit_problems(runtime: Runtime, offer: Offer) -> Iterator[FieldError]:
    most = offer.limits.max_nodes_total if offer.limits is not None else None
    least = sum(pool.fields.minimum for pool in pools_of(runtime))
    if most is not None and least > most:
        yield invalid("spec.shoot.provider.workers", least, f"the pools have at most {most} machines as their minimum")


def _unsupported(path: str, value: str, offered: Iterable[str]) -> FieldError:
    """Lists the alternatives; of many only the last, which of versions are the newest."""
    names = list(offered)
    return not_supported(path, value, names[-_SHOWN:])
