"""The facts that rules of a Shoot depend on: its Kubernetes version, Gardener's release, whether it has workers."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple, Self

from hortus.kube.versions import Version, VersionError

Release = tuple[int, int]
"""Major and minor version of Gardener."""
NEWEST: Final[Release] = (1, 150)
RELEASES: Final[tuple[Release, ...]] = ((1, 148), (1, 149), NEWEST)
"""The releases of Gardener whose rules are known, oldest first."""


class Span(NamedTuple):
    """The versions from `added` until before `removed`; None is without a bound."""

    added: Release | None = None
    removed: Release | None = None

    @classmethod
    def of(cls, text: str) -> Self:
        """The span of a text such as `1.32-`, `-1.36` or `1.30-1.35`."""
        added, _, removed = text.partition("-")
        return cls(_series(added), _series(removed))

    def covers(self, version: Release) -> bool:
        return (self.added is None or version >= self.added) and (self.removed is None or version < self.removed)

    def __str__(self) -> str:
        bounds = [f"{sign} {bound[0]}.{bound[1]}" for sign, bound in ((">=", self.added), ("<", self.removed)) if bound]
        return f"versions {', '.join(bounds)}" if bounds else "all kubernetes versions"


class RuleFacts(NamedTuple):
    """RuleFacts of one Shoot or of one of its pools."""

    version: str
    """The Kubernetes version as the Shoot has it."""
    series: Release | None
    """Its major and minor version; None for a text that is no semantic version."""
    normal: Release | None
    """The same of the version without its prerelease, which tables by version are read with."""
    unreadable: str = ""
    """The problem of a version that has no `normal`."""
    release: Release = NEWEST
    workerless: bool = False

    def reaches(self, series: Release) -> bool:
        return self.series is not None and self.series >= series

    def below(self, series: Release) -> bool:
        return self.series is not None and self.series < series


@lru_cache(maxsize=256)
def facts_of(version: str, release: Release = NEWEST, *, workerless: bool = False) -> RuleFacts:
    """The facts of a Kubernetes version."""
    series: Release | None = None
    normal: Release | None = None
    unreadable = ""
    try:
        read = Version(version)
        series = (read.major, read.minor)
    except VersionError:
        pass
    try:
        plain = normalized(version)
        normal = (plain.major, plain.minor)
    except VersionError as error:
        unreadable = str(error)
    return RuleFacts(version, series, normal, unreadable, release, workerless)


def normalized(version: str) -> Version:
    """A version without any `v` and from its first `-`, `+` or `~` on, as Gardener compares versions. Raises
    VersionError."""
    text = version.replace("v", "")
    ends = [at for at in map(text.find, "-+~") if at >= 0]
    return Version(text[: min(ends)] if ends else text)


def _series(text: str) -> Release | None:
    major, _, minor = text.partition(".")
    return (int(major), int(minor)) if text else None
