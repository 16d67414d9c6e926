"""The images of a manifest: found in workloads, each with the version under which the component lists it. Pure.

Looked into are Deployments and StatefulSets: their containers, init containers and the values of environment variables
that look like references.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from hortus.domains.modules.types import SEMVER_PATTERN
from hortus.kube.objects import shaped
from hortus.kube.shapes import problem_of

_WORKLOADS = frozenset(("Deployment", "StatefulSet"))
_MOVING_TAGS = frozenset(("latest", "main"))
_SHORTEST, _LONGEST = 3, 256
"""Characters of a value of an environment variable that may be a reference."""
_DOMAIN = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*(?::[0-9]+)?)"
_PATH = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_PATH}(?:/{_PATH})*)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
"""The grammar of distribution/reference, `reference.go`; sha256 alone, as registries use."""
_DIGITS = 12
"""Characters of a digest in a version."""
_SHORT_DIGITS = 8
"""Characters of a digest in a name."""


class BadImage(ValueError):
    """An image that cannot be published; the message names it, its place and the fix."""


class ModuleImage(NamedTuple):
    """A reference in its parts."""

    reference: str
    name: str
    tag: str
    digest: str

    @property
    def resource_name(self) -> str:
        """The name of the image's resource in the component: the last part of the path, with a part of the digest."""
        last = self.name.rpartition("/")[2]
        return f"{last}-{self._hex[:_SHORT_DIGITS]}" if self.digest else last

    @property
    def version(self) -> str:
        """The version of that resource, always a semantic one."""
        is_semantic = re.fullmatch(SEMVER_PATTERN, self.tag) is not None
        if not self.digest:
            return self.tag if is_semantic else f"0.0.0-{_prerelease(self.tag)}"
        metadata = f"sha256.{self._hex[:_DIGITS]}"
        if not self.tag:
            return f"0.0.0+{metadata}"
        return f"{self.tag}+{metadata}" if is_semantic else f"0.0.0-{_prerelease(self.tag)}+{metadata}"

    @property
    def _hex(self) -> str:
        return self.digest.partition(":")[2]


def _prerelease(tag: str) -> str:
    """A tag as a prerelease of a semantic version, which knows no `_`."""
    return tag.replace("_", "-")


class _Variable(msgspec.Struct):
    name: str = ""
    value: str | None = None


class _Container(msgspec.Struct):
    name: str = ""
    image: str | None = None
    env: list[_Variable] | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None


class _Template(msgspec.Struct):
    spec: _PodSpec | None = None


class _Spec(msgspec.Struct):
    template: _Template | None = None


class _Metadata(msgspec.Struct):
    name: str = ""


class _Head(msgspec.Struct):
    kind: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Workload(msgspec.Struct):
    spec: _Spec | None = None


def images_of(objects: Iterable[Any]) -> list[ModuleImage]:
    """All images of a manifest, each once, by their references. Raises BadImage."""
    found: dict[str, ModuleImage] = {}
    for obj in objects:
        head = shaped(obj, _Head)
        if head is not None and head.kind in _WORKLOADS:
            for image in _of_workload(f"{head.kind} {head.metadata.name}", obj):
                found.setdefault(image.reference, image)
    return [found[reference] for reference in sorted(found)]


def _of_workload(place: str, obj: Any) -> Iterator[ModuleImage]:
    try:
        spec = msgspec.convert(obj, _Workload).spec
    except msgspec.ValidationError as error:
        raise BadImage(f"the manifest cannot be used: {problem_of(error, place=place)}") from None
    pods = spec.template.spec if spec and spec.template else None
    if pods is None:
        return
    for container in (*(pods.containers or ()), *(pods.init_containers or ())):
        where = f"{place}, container {container.name}"
        if container.image:
            yield read_image(container.image, where)
        for variable in container.env or ():
            value = variable.value or ""
            if _looks_like_reference(value) and (image := _parsed(value)) is not None:
                yield _pinned(image, f"{where}, variable {variable.name}")


def _looks_like_reference(value: str) -> bool:
    marked = ":" in value or "@" in value
    return marked and _SHORTEST <= len(value) <= _LONGEST and not any(char.isspace() for char in value)


def read_image(text: str, where: str) -> ModuleImage:
    """A reference that names one content. Raises BadImage."""
    image = _parsed(text)
    if image is None:
        raise BadImage(f"{where}: {text[:200]!r} is no image; write registry/path/name:tag")
    return _pinned(image, where)


def _pinned(image: ModuleImage, where: str) -> ModuleImage:
    if not image.tag and not image.digest:
        raise BadImage(f"{where}: image {image.reference} has no tag; write one, or a digest")
    if image.tag in _MOVING_TAGS:
        raise BadImage(f"{where}: image {image.reference} has the tag {image.tag}, which moves; write a version")
    return image


def _parsed(text: str) -> ModuleImage | None:
    found = _REFERENCE.fullmatch(text)
    return (
        ModuleImage(text, found.group("name"), found.group("tag") or "", found.group("digest") or "") if found else None
    )


def distinct_names(images: Iterable[ModuleImage]) -> list[tuple[str, ModuleImage]]:
    """The images with names that differ: two with one name and version get a part of their reference's hash."""
    taken: set[tuple[str, str]] = set()
    named = []
    for image in images:
        name = image.resource_name
        if (name, image.version) in taken:
            name = f"{name}-{hashlib.sha256(image.reference.encode()).hexdigest()[:_SHORT_DIGITS]}"
        taken.add((name, image.version))
        named.append((name, image))
    return named
