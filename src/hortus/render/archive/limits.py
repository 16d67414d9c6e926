"""The limits of an archive, and the budget that archives within one another spend from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec

from hortus.render.archive.errors import ArchiveError, Rule, shown


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on one archive and all archives opened out of it; sizes in bytes.

    The defaults hold the largest charts and module bundles known by some ten times over.
    """

    compressed: int = 64 << 20
    """The archive as it comes."""
    total: int = 256 << 20
    """All that it unpacks to, headers and padding of a tar included."""
    file: int = 64 << 20
    """One file."""
    entries: int = 20_000
    name: int = 1_024
    """A whole path, in bytes of UTF-8."""
    component: int = 255
    """One part of a path, in bytes of UTF-8: what file systems take."""
    depth: int = 32
    """Parts of a path."""
    metadata: int = 1 << 20
    """One extended header of a tar."""
    ratio: int = 200
    """Unpacked over compressed size. Manifests and charts stay below 20; deflate's own bound is 1032."""
    slack: int = 4 << 20
    """Unpacked size from which `ratio` is looked at: small files of blanks are common and harmless."""
    nested: int = 4
    """Archives within archives: a chart in a chart's charts/ folder, and so on."""


class RemainingLimits:
    """The rest of `Limits` while archives, one inside the other, are read."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.entries = 0
        self.total = 0
        self.level = 0
        """Archives around what is being read; an inner one is opened within `archive()` of the outer one."""

    def entry(self) -> None:
        """Count one more entry. Raises ArchiveError."""
        self.entries += 1
        if self.entries > self.limits.entries:
            raise ArchiveError(Rule.ENTRIES, f"holds more than the allowed {self.limits.entries} entries")

    def unpacked(self, size: int) -> None:
        """Count `size` more bytes. Raises ArchiveError."""
        self.total += size
        if self.total > self.limits.total:
            raise ArchiveError(Rule.SIZE, f"unpacks to more than the allowed {self.limits.total} bytes")

    def file(self, name: str, size: int) -> None:
        """Check the size that one file claims or turns out to have. Raises ArchiveError."""
        if size > self.limits.file:
            raise ArchiveError(Rule.SIZE, f"{size} bytes are more than the allowed {self.limits.file}", entry=name)

    def compressed(self, size: int) -> None:
        """Check the size of an archive before it is looked into. Raises ArchiveError."""
        if size > self.limits.compressed:
            raise ArchiveError(Rule.SIZE, f"is {size} bytes long; {self.limits.compressed} are allowed")

    def ratio(self, packed: int, unpacked: int, entry: str = "") -> None:
        """Check how much `packed` bytes have grown to. Raises ArchiveError."""
        if unpacked > self.limits.slack and unpacked > packed * self.limits.ratio:
            raise ArchiveError(Rule.RATIO, f"grows more than {self.limits.ratio} times when unpacked", entry=entry)

    @contextlib.contextmanager
    def archive(self, name: str = "") -> Iterator[None]:
        """While inside of an archive. Raises ArchiveError when there are too many around it."""
        if self.level > self.limits.nested:
            problem = f"lies in more than {self.limits.nested} archives one inside the other"
            raise ArchiveError(Rule.NESTED, f"the archive {shown(name)} {problem}" if name else problem)
        self.level += 1
        try:
            yield
        finally:
            self.level -= 1
