"""Versions of a CloudProfile by time: their classification, and which is the newest of some.

Source: gardener, pkg/api/core/v1beta1/helper/cloudprofile.go. A version has stages (`lifecycle`), or the older fields
`classification` and `expirationDate`, which stand for such stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hortus.kube.objects import parse_time
from hortus.kube.versions import Version, VersionError

Offered = Mapping[str, Any]
"""A version of Kubernetes or of a machine image as a CloudProfile has it."""
SUPPORTED: Final = "supported"
PREVIEW: Final = "preview"
DEPRECATED: Final = "deprecated"
EXPIRED: Final = "expired"
UNAVAILABLE: Final = "unavailable"


def classification(version: Offered, now: float) -> str:
    """The classification of a version at a time."""
    stages = version.get("lifecycle") or ()
    if not stages:
        until = version.get("expirationDate")
        if until and parse_time(until) < now:
            return EXPIRED
        return str(version.get("classification") or SUPPORTED)
    found = UNAVAILABLE
    for stage in stages:
        start = stage.get("startTime")
        if start is None or parse_time(start) < now:
            found = stage["classification"]
    return found


def is_expired(version: Offered, now: float) -> bool:
    return classification(version, now) == EXPIRED


def newest(versions: Iterable[Offered]) -> Offered | None:
    """The highest of some versions; those that are no semantic versions do not count."""
    found: tuple[Version, Offered] | None = None
    for one in versions:
        number = number_of(one)
        if number is not None and (found is None or number > found[0]):
            found = number, one
    return None if found is None else found[1]


def number_of(version: Offered | str) -> Version | None:
    """The semantic version, None where it is none."""
    try:
        return Version(version if isinstance(version, str) else str(version.get("version", "")))
    except VersionError:
        return None
