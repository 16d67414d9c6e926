"""The images that machine types get, as rows: for each image version and region the image, or the reason for none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from hortus.gardener.machineimages import (
    AmbiguousImage,
    ImageNotFound,
    ImageProfile,
    KeptImage,
    MachineDeployment,
    MachineImageRequest,
    MachinePool,
    UnreadableProfile,
    machine_deployments,
    profile_of,
    select_image,
)
from hortus.kube.objects import Object

MISSING = "none"
AMBIGUOUS = "several"


class ImageRow(NamedTuple):
    """The image of one machine type in one region."""

    machine_type: str
    region: str
    image: str
    version: str
    found: str
    """The id or name in OpenStack; `none`, or `several` that fit equally well."""


def image_rows(profile: ImageProfile, *, region: str = "") -> Iterator[ImageRow]:
    """All rows of a CloudProfile, or those of one region."""
    for machine_type in profile.machine_types:
        for place in [region] if region else [one.name for one in profile.regions]:
            for image in profile.machine_images:
                for version in image.versions:
                    wanted = MachineImageRequest(
                        name=image.name,
                        version=version.version,
                        region=place,
                        machine_type=machine_type.name,
                    )
                    found = _found(profile, wanted)
                    yield ImageRow(machine_type.name, place, image.name, version.version, found)


def _found(profile: ImageProfile, wanted: MachineImageRequest) -> str:
    try:
        return next(iter(select_image(profile, wanted).of_class.values()))
    except ImageNotFound:
        return MISSING
    except AmbiguousImage:
        return AMBIGUOUS


class _MachineImage(msgspec.Struct):
    name: str = ""
    version: str = ""


class _Pool(msgspec.Struct, rename="camel"):
    name: str
    machine_type: str = ""
    machine_image: _MachineImage = msgspec.field(default_factory=_MachineImage)
    architecture: str = "amd64"
    minimum: int = 0
    maximum: int = 0
    max_surge: int | str = 1
    max_unavailable: int | str = 0
    zones: tuple[str, ...] = ()
    labels: dict[str, str] = {}


class _WorkerSpec(msgspec.Struct):
    region: str = ""
    pools: tuple[_Pool, ...] = ()


class _ProviderStatus(msgspec.Struct, rename="camel"):
    machine_images: tuple[KeptImage, ...] = ()


class _WorkerStatus(msgspec.Struct, rename="camel"):
    provider_status: _ProviderStatus | None = None


class _Named(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Worker(msgspec.Struct):
    metadata: _Named
    spec: _WorkerSpec
    status: _WorkerStatus | None = None


class _ClusterSpec(msgspec.Struct, rename="camel"):
    cloud_profile: Object


class _Cluster(msgspec.Struct):
    spec: _ClusterSpec


def profile_in(cluster: Object) -> ImageProfile:
    """The CloudProfile in a Cluster of the seed. Raises UnreadableProfile."""
    try:
        return profile_of(msgspec.convert(cluster, _Cluster).spec.cloud_profile)
    except msgspec.ValidationError as error:
        raise UnreadableProfile(f"Cluster: {error}") from None


def deployments_of(worker: Object, profile: ImageProfile) -> Sequence[MachineDeployment]:
    """The machine deployments of a Worker. Raises UnreadableProfile, ImageNotFound, AmbiguousImage."""
    try:
        found = msgspec.convert(worker, _Worker)
    except msgspec.ValidationError as error:
        raise UnreadableProfile(f"Worker: {error}") from None
    status = found.status.provider_status if found.status is not None else None
    kept = status.machine_images if status is not None else ()
    images = {
        pool.name: select_image(
            profile,
            MachineImageRequest(
                name=pool.machine_image.name,
                version=pool.machine_image.version,
                region=found.spec.region,
                machine_type=pool.machine_type,
                architecture=pool.architecture,
            ),
            kept,
        )
        for pool in found.spec.pools
    }
    pools = [
        MachinePool(
            name=pool.name,
            machine_type=pool.machine_type,
            architecture=pool.architecture,
            minimum=pool.minimum,
            maximum=pool.maximum,
            max_surge=pool.max_surge,
            max_unavailable=pool.max_unavailable,
            zones=pool.zones,
            labels=pool.labels,
        )
        for pool in found.spec.pools
    ]
    return list(machine_deployments(found.metadata.namespace, pools, images))
