"""Semantic versions, read and ordered as by Masterminds/semver v3: "1.28" is 1.28.0, a leading "v" is allowed."""

from __future__ import annotations

import functools
import re

_VERSION = re.compile(
    r"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(?:-([0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?"
    r"(?:\+([0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?",
    re.ASCII,
)
_LONGEST_VERSION = 256
"""Characters, as in the Go library."""


class VersionError(ValueError):
    """No semantic version, or no constraint; worded as by the Go library."""


@functools.total_ordering
class Version:
    """One version; metadata does not count in comparisons."""

    __slots__ = ("major", "metadata", "minor", "original", "patch", "pre")

    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST_VERSION:
            raise VersionError(f"version string is too long (max {_LONGEST_VERSION} bytes)")
        found = _VERSION.fullmatch(text)
        if not found:
            raise VersionError("invalid semantic version")
        self.original = text
        self.major, self.minor, self.patch = (_segment(part) for part in found.groups()[:3])
        self.pre = found[4] or ""
        self.metadata = found[5] or ""
        if any(part.isdigit() and part[0] == "0" and len(part) > 1 for part in self.pre.split(".")):
            raise VersionError("version segment starts with 0")

    def __str__(self) -> str:
        end = ("-" + self.pre if self.pre else "") + ("+" + self.metadata if self.metadata else "")
        return f"{self.major}.{self.minor}.{self.patch}{end}"

    @property
    def _core(self) -> tuple[int, int, int]:
        return (self.major, self.minor, self.patch)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.compare(other) == 0

    def __hash__(self) -> int:
        return hash((self._core, self.pre))

    def __lt__(self, other: Version) -> bool:
        return self.compare(other) < 0

    def compare(self, other: Version) -> int:
        """-1, 0 or 1."""
        if self._core != other._core:
            return -1 if self._core < other._core else 1
        if self.pre == other.pre:
            return 0
        if not self.pre or not other.pre:
            return 1 if not self.pre else -1
        return compare_prereleases(self.pre, other.pre)


def _segment(text: str | None) -> int:
    number = int(text or 0)
    if number > (1 << 64) - 1:
        raise VersionError(f'error parsing version segment: strconv.ParseUint: parsing "{text}": value out of range')
    return number


def compare_prereleases(first: str, second: str) -> int:
    """Compares by parts: numbers before words, and fewer parts before more."""
    a, b = first.split("."), second.split(".")
    for at in range(max(len(a), len(b))):
        found = _compare_parts(a[at] if at < len(a) else "", b[at] if at < len(b) else "")
        if found:
            return found
    return 0


def _compare_parts(first: str, second: str) -> int:
    if first == second:
        return 0
    if not first or not second:
        return -1 if not first else 1
    a = int(first) if first.isdigit() and len(first) < 20 else None
    b = int(second) if second.isdigit() and len(second) < 20 else None
    if a is None and b is None:
        return 1 if first > second else -1
    if a is None or b is None:
        return 1 if a is None else -1
    return (a > b) - (a < b) or -1


__all__ = ["Version", "VersionError", "compare_prereleases"]
