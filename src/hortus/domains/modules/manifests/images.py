"""Image references of workloads, and their replacement by localised ones. Pure.

Grammar: the reference package of the distribution project, with the registry left out or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?"
_REFERENCE: Final = re.compile(
    rf"(?:{_HOST}/)?(?:{_PART}/)*(?P<name>{_PART})(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}))?"
    r"(?:@(?P<digest>[a-z0-9]+:[0-9a-fA-F]{32,}))?"
)
_LONGEST: Final = 1000


class ImageName(NamedTuple):
    """Last segment of the path, and tag; the digest where there is no tag."""

    name: str
    tag: str


def image_name(text: str) -> ImageName | None:
    """The name by which images are compared; None for a text that is no reference with a tag or digest."""
    found = _REFERENCE.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None or not (found.group("tag") or found.group("digest")):
        return None
    return ImageName(found.group("name"), found.group("tag") or found.group("digest"))


def localized(images: Iterable[str]) -> Mapping[ImageName, str]:
    """The replacement for each name; the first of equal names counts."""
    found: dict[ImageName, str] = {}
    for image in images:
        name = image_name(image)
        if name is not None:
            found.setdefault(name, image)
    return found
