"""Versions of Kubernetes and of machine images, which are never lowered. "1.28" counts as 1.28.0."""

from __future__ import annotations

from collections.abc import Iterable

from hortus.kube.versions import Version, VersionError


def greater(one: str, other: str) -> bool:
    """True when `one` is the greater version; False when either is none."""
    try:
        return Version(one) > Version(other)
    except VersionError:
        return False


def is_version(text: str) -> bool:
    try:
        Version(text)
    except VersionError:
        return False
    return True


def ordered(texts: Iterable[str]) -> list[str]:
    """The texts sorted by version; one that is no version comes first."""
    return sorted(texts, key=lambda text: (is_version(text), Version(text) if is_version(text) else text))


def kept(wanted: str, live: str) -> str:
    """The version to ask for: `wanted`, unless the cluster has it, however written, or is beyond it already."""
    return live if is_version(live) and is_version(wanted) and not greater(wanted, live) else wanted


def reaches(version: str, least: str) -> bool:
    """True when `version` is `least` or later; False when it is none."""
    return is_version(version) and not greater(least, version)


def covers(series: str, version: str) -> bool:
    """True when `version` is `series`, or one of it when `series` names only major and minor, as Gardener takes it."""
    return version == series or (series.count(".") == 1 and version.startswith(f"{series}."))
