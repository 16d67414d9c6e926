"""The images that a Shoot needs, from rendered objects and image vectors, and their state in a mirror.

An image is whole in the mirror when its manifest is there for each architecture of the nodes. Only manifests are read,
and by `render.oci`, which verifies each digest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from hortus.domains.garden.airgap.config import MirrorRegistry
from hortus.kube.shapes import decode_json
from hortus.render.artifacts import ArtifactError, NotFound
from hortus.render.oci import (
    BadReference,
    ImageManifest,
    Index,
    OciClient,
    Reference,
    parse_reference,
)

ARCHITECTURES: Final = ("amd64", "arm64")
FOUND: Final = "found"
MISSING: Final = "missing"
_AT_ONCE: Final = 8
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_LARGEST_CONFIG: Final = 1 << 20


class NeededImage(msgspec.Struct, frozen=True, kw_only=True):
    """One image as it is written, and the architectures that it is made for."""

    image: str
    source: str
    """The object or entry that names it first."""
    architectures: tuple[str, ...] = ()
    """Empty for any."""


class MirrorFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one image in the mirror, for one architecture."""

    image: str
    architecture: str
    state: str
    """found, missing, or a problem in words."""
    digest: str = ""
    pinned: bool = False
    """True where the image is named by digest."""


class _VectorEntry(msgspec.Struct):
    name: str = ""
    repository: str = ""
    tag: str = ""
    ref: str = ""
    architectures: tuple[str, ...] = ()


class _Vector(msgspec.Struct):
    images: list[_VectorEntry] = []


def images_in(documents: Iterable[Any]) -> list[NeededImage]:
    """The images of objects and image vectors, each once, in order. Raises ValueError for one that cannot be read."""
    found: dict[str, NeededImage] = {}
    for document in documents:
        for one in _images(document):
            known = found.get(one.image)
            if known is not None and known.architectures and one.architectures:
                both = tuple(dict.fromkeys((*known.architectures, *one.architectures)))
                found[one.image] = msgspec.structs.replace(known, architectures=both)
            elif known is None or known.architectures:
                found[one.image] = one
    for one in found.values():
        try:
            reference_of(one.image)
        except BadReference as error:
            raise ValueError(f"{one.source}: {error}") from None
    return list(found.values())


def _images(document: Any) -> Iterator[NeededImage]:
    match document:
        case {"kind": str(), "items": list(items)}:
            for item in items:
                yield from _images(item)
        case {"kind": str(kind), "metadata": {"name": str(name)}}:
            for image in _of_containers(document):
                yield NeededImage(image=image, source=f"{kind} {name}")
        case {"images": list()}:
            try:
                vector = msgspec.convert(document, _Vector)
            except msgspec.ValidationError as error:
                raise ValueError(f"the image vector cannot be read: {error}") from None
            for one in vector.images:
                if image := _vector_image(one):
                    yield NeededImage(image=image, source=f"image vector {one.name}", architectures=one.architectures)


def _vector_image(one: _VectorEntry) -> str:
    if one.ref:
        return one.ref
    joint = "@" if one.tag.startswith("sha256:") else ":"
    return f"{one.repository}{joint}{one.tag}" if one.tag else one.repository


def _of_containers(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _of_containers(one)
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key in _CONTAINERS and isinstance(inner, list):
            for container in inner:
                match container:
                    case {"image": str(image)} if image:
                        yield image
        else:
            yield from _of_containers(inner)


def registries_of(images: Iterable[NeededImage]) -> list[str]:
    """The registries that images are pulled from without a mirror, each once."""
    return list(dict.fromkeys(reference_of(one.image).registry for one in images))


def reference_of(image: str) -> Reference:
    """The image as containerd reads it: without a registry it is of Docker Hub. Raises BadReference."""
    first, slash, _ = image.partition("/")
    named = bool(slash) and ("." in first or ":" in first or first == "localhost")
    found = parse_reference(image if named else f"docker.io/{image}")
    return found if found.tag or found.digest else msgspec.structs.replace(found, tag="latest")


def mirrored(image: str, registry: MirrorRegistry) -> Reference:
    """The place of an image in the mirror. Raises BadReference."""
    found = reference_of(image)
    repository = f"{registry.path}/{found.repository}" if registry.path else found.repository
    port = registry.mirror.partition("://")[2].partition("/")[0]
    return msgspec.structs.replace(found, registry=port, repository=repository)


async def check_mirror(
    client: OciClient, registry: MirrorRegistry, images: Sequence[NeededImage], architectures: Sequence[str]
) -> list[MirrorFinding]:
    """The state of each image for each architecture that the nodes have and the image is made for."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(image: NeededImage) -> list[MirrorFinding]:
        wanted = [arch for arch in architectures if not image.architectures or arch in image.architectures]
        async with turns:
            return await _check(client, registry, image.image, wanted)

    return [finding for found in await asyncio.gather(*map(one, images)) for finding in found]


async def _check(
    client: OciClient, registry: MirrorRegistry, image: str, architectures: Sequence[str]
) -> list[MirrorFinding]:
    pinned = "@" in image
    try:
        reference = mirrored(image, registry)
        held = await _held(client, reference)
    except (BadReference, ArtifactError) as error:
        held = {arch: (MISSING if isinstance(error, NotFound) else str(error), "") for arch in architectures}
    return [
        MirrorFinding(image=image, architecture=arch, state=state, digest=digest, pinned=pinned)
        for arch in architectures
        for state, digest in (held.get(arch, (MISSING, "")),)
    ]


async def _held(client: OciClient, reference: Reference) -> dict[str, tuple[str, str]]:
    """State and digest by architecture, of those that the mirror names. Raises ArtifactError."""
    found = await client.manifest(reference)
    if isinstance(found, ImageManifest):
        return {await _architecture(client, reference, found): (FOUND, found.digest)}
    return await _of_index(client, reference, found)


async def _of_index(client: OciClient, reference: Reference, index: Index) -> dict[str, tuple[str, str]]:
    """The same of an index: a mirror may have copied it without all of its manifests."""
    held: dict[str, tuple[str, str]] = {}
    for one in index.manifests:
        if one.platform is None or one.platform.os != "linux" or one.platform.architecture in held:
            continue
        try:
            await client.manifest(reference.at(one.digest))
            held[one.platform.architecture] = (FOUND, one.digest)
        except NotFound:
            held[one.platform.architecture] = (MISSING, one.digest)
    return held


class _Config(msgspec.Struct):
    architecture: str = ""


async def _architecture(client: OciClient, reference: Reference, manifest: ImageManifest) -> str:
    raw = await client.blob_at(reference, manifest.config.digest, largest=_LARGEST_CONFIG)
    try:
        return decode_json(raw, _Config).architecture
    except msgspec.MsgspecError:
        return ""


def lacking_images(findings: Iterable[MirrorFinding]) -> list[MirrorFinding]:
    """The findings of images that nodes could not pull."""
    return [one for one in findings if one.state != FOUND]
