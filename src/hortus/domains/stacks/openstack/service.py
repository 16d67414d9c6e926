"""Decisions about node images: pure functions over what the API objects and Glance say."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from hortus.domains.stacks.names import FLEET_GROUP, ReleaseName, StackVersion
from hortus.domains.stacks.openstack.glance import CloudImage, ImportTask
from hortus.domains.stacks.types import OpenStackNodeImage
from hortus.kube.shapes import problem_of
from hortus.kube.yaml import YamlError, load

IMAGE_ANNOTATION: Final = f"{FLEET_GROUP}/image-id"
"""Annotation of an OpenStackNodeImageRelease: the ID of the image that was created or imported for it."""
HASH_PROPERTY: Final = "hortus_hash"
"""Property of an image, given by the release: its expected hash, as sha512:<hex>."""
IMPORT_AGAIN: Final = 300.0
"""Seconds after which an import that failed, or of which Glance shows nothing, is begun again."""
_QUEUED: Final = "queued"
_WAITING: Final = frozenset((_QUEUED, "saving", "uploading", "importing", "deleted", "pending_delete"))
_BROKEN: Final = frozenset(("deactivated", "killed"))
_FAILED: Final = "failure"
_RUNNING: Final = frozenset(("pending", "processing"))


class ImageState(Enum):
    """The next step for an image."""

    IMPORT = "import"
    """Begin the import."""
    WAIT = "wait"
    FAILED = "failed"
    """The last import failed, and is begun again later."""
    TIMED_OUT = "timed out"
    BROKEN = "broken"
    """The image is of no use, and only people can change that."""
    UNKNOWN = "unknown"
    ACTIVE = "active"


class ImageVerdict(NamedTuple):
    """The state of an image, in a sentence."""

    state: ImageState
    message: str = ""


class BadNodeImages(ValueError):
    """node-images.yaml cannot be used; the message names the field and the fix."""


class _Document(msgspec.Struct, rename="camel"):
    open_stack_node_images: list[OpenStackNodeImage] = []


def read_node_images(data: bytes) -> list[OpenStackNodeImage]:
    """The images of a node-images.yaml. Raises BadNodeImages."""
    try:
        found = msgspec.convert(load(data) or {}, _Document).open_stack_node_images
    except YamlError as error:
        raise BadNodeImages(f"node-images.yaml: {error}") from None
    except msgspec.ValidationError as error:
        raise BadNodeImages(problem_of(error, place="node-images.yaml")) from None
    for at, image in enumerate(found):
        place = f"node-images.yaml: openStackNodeImages[{at}]"
        if not image.url.startswith(("http://", "https://")):
            raise BadNodeImages(f"{place}.url: is {image.url[:80]!r}; write an http or https address")
        if not image.create_opts.name:
            raise BadNodeImages(f"{place}.createOpts.name: is missing; name the image")
    names = [image.create_opts.name for image in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadNodeImages(f"node-images.yaml: the image {twice[0]!r} stands there twice; remove one")
    return found


def object_name(release: ReleaseName, image: OpenStackNodeImage, version: StackVersion | None) -> str:
    """The name of the OpenStackNodeImageRelease, which releases with the same image share."""
    parts = (release.stem, image.create_opts.name, version.dash if version is not None else "")
    return "-".join(filter(None, parts))


def judge(
    image: CloudImage,
    tasks: Sequence[ImportTask],
    *,
    waited: float | None,
    begun: float | None,
    timeout: float,
) -> ImageVerdict:
    """The next step for an image that was found.

    In seconds: `waited` is the time since its import began, `begun` since it was begun last, both None where no import
    is known; a `timeout` of 0 never ends.
    """
    if image.status == "active":
        return ImageVerdict(ImageState.ACTIVE)
    if image.status in _BROKEN:
        fix = "activate it" if image.status == "deactivated" else "delete it, so that it is created again"
        return ImageVerdict(ImageState.BROKEN, f"image {image.id} is {image.status}; {fix}")
    if image.status not in _WAITING:
        return ImageVerdict(ImageState.UNKNOWN, f"image {image.id} has the status {image.status[:40]!r}")
    if timeout and waited is not None and waited > timeout:
        return ImageVerdict(
            ImageState.TIMED_OUT, f"image {image.id} is still {image.status} after {waited / 60:.0f} minutes"
        )
    if image.status == _QUEUED and (verdict := _queued(image, tasks, begun)) is not None:
        return verdict
    return ImageVerdict(ImageState.WAIT, _progress(image, tasks))


def _queued(image: CloudImage, tasks: Sequence[ImportTask], begun: float | None) -> ImageVerdict | None:
    """The verdict on an image without data; None while its import is under way."""
    latest = tasks[0] if tasks else None
    if latest is not None and latest.status in _RUNNING:
        return None
    if begun is None or begun > IMPORT_AGAIN:
        return ImageVerdict(ImageState.IMPORT)
    if latest is not None and latest.status == _FAILED:
        said = _said(latest)
        return ImageVerdict(ImageState.FAILED, f"the import of image {image.id} failed{said}; it is begun again")
    return None


def _progress(image: CloudImage, tasks: Sequence[ImportTask]) -> str:
    said = _said(tasks[0]) if tasks else ""
    return f"image {image.id} is {image.status}{said}"


def _said(task: ImportTask) -> str:
    """The words of Glance on a task, such as `Copied 15 MiB`."""
    words = " ".join((task.message or "").split())
    return f" ({words[:200]})" if words else ""


def foreign_problem(image: CloudImage, wanted: OpenStackNodeImage, tasks: Sequence[ImportTask]) -> str:
    """The reason for which an image that was made by others is not the wanted one; empty where it may be."""
    options = wanted.create_opts
    for field in ("disk_format", "container_format"):
        expected, found = getattr(options, field), getattr(image, field)
        if expected and found and expected != found:
            return f"image {image.id} has {field} {found!r} in place of {expected!r}; {_FIX}"
    source = next((task.uri for task in tasks if task.status == "success"), "")
    if source and source != wanted.url:
        return f"image {image.id} was imported from another address than spec.image.url; {_FIX}"
    return ""


_FIX: Final = "delete or rename it, or give the release's image another name"


def hash_problem(image: CloudImage, wanted: OpenStackNodeImage) -> str:
    """The reason for which an active image has other data than the release expects; empty where none is known."""
    algorithm, _, value = wanted.create_opts.properties.get(HASH_PROPERTY, "").partition(":")
    if not value:
        return ""
    if image.os_hash_algo != algorithm:
        return f"image {image.id} has a hash of {image.os_hash_algo!r}; write {HASH_PROPERTY} with that algorithm"
    if (image.os_hash_value or "").lower() != value.lower():
        return f"image {image.id} has other data than {HASH_PROPERTY} says; {_FIX}"
    return ""
