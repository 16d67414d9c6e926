"""The segments that a spool holds: their sizes and begins, the cursors of the sinks, and the choice of those to delete.

A deletion moves the anchor, the begin of the chain, in front of the oldest segment that is left.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import msgspec

from hortus.domains.garden.audit.buffer.spool.disk import SpoolDisk
from hortus.domains.garden.audit.buffer.spool.marks import SpoolMarks, SpoolPosition
from hortus.domains.garden.audit.buffer.spool.reports import ReportReason, SpoolReport
from hortus.domains.garden.audit.buffer.spool.segments import segment_path

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class SpoolFull(Exception):
    """The spool has no room, and nothing may be deleted."""


class SpoolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a spool."""

    max_bytes: int = 10 * 1024**3
    """All segments together, with the reserved room of the last one."""
    segment_bytes: int = 64 * 1024**2
    retain_bytes: int = 1024**3
    """Segments that all sinks have confirmed are kept for replay up to so many bytes."""
    drop_oldest: bool = False
    """True deletes the oldest lines when there is no room; False refuses new ones."""

    def __post_init__(self) -> None:
        if not 0 < self.segment_bytes <= self.max_bytes // 2:
            raise ValueError(f"max_bytes {self.max_bytes} must hold two segments of {self.segment_bytes} bytes")


class HeldSegments:
    """Changed by the thread that writes; other threads read `begin`, `bytes` and move cursors."""

    def __init__(
        self,
        folder: Path,
        settings: SpoolSettings,
        marks: SpoolMarks,
        disk: SpoolDisk,
        report: Callable[[SpoolReport], None],
    ) -> None:
        self.sizes: dict[int, int] = {}
        """Bytes by segment, with reserved ones."""
        self.cursors: dict[str, SpoolPosition] = {}
        self.begin = SpoolPosition(0, 0, 0, "")
        """The begin of the oldest segment."""
        self.dropped = 0
        self._starts: dict[int, SpoolPosition] = {}
        self._folder = folder
        self._settings = settings
        self._marks = marks
        self._disk = disk
        self._report = report

    def add(self, start: SpoolPosition, size: int) -> None:
        """Adds the segment that begins at `start`, or replaces what is known of it."""
        self.sizes[start.segment] = size
        self._starts[start.segment] = start
        self.begin = self._starts[min(self._starts)]

    def bytes(self) -> int:
        # Copied first: another thread may add a segment.
        return sum(list(self.sizes.values()))

    def cursor(self, sink: str) -> SpoolPosition:
        """The cursor of `sink`, or the begin where lines were dropped in front of it."""
        return max(self.cursors[sink], self.begin, key=lambda place: (place.segment, place.offset))

    def make_room(self, room: int, *, keep: int) -> None:
        """Deletes until the segments but `keep`, which is written, take no more than `room`. Raises SpoolFull."""
        self._delete_confirmed(room, keep)
        while self._bytes_without(keep) > room:
            self._drop(f"{self._settings.max_bytes} bytes are in use", keep)

    def free_disk(self, error: OSError, *, keep: int) -> None:
        """Deletes something: all confirmed segments, else the oldest one. Raises SpoolFull."""
        if not self._delete_confirmed(0, keep):
            self._drop(str(error.strerror), keep)

    def _bytes_without(self, keep: int) -> int:
        return self.bytes() - self.sizes[keep]

    def _delete_confirmed(self, room: int, keep: int) -> bool:
        """Deletes confirmed segments beyond `retain_bytes`, and more while they take the room.

        Returns whether one was deleted.
        """
        first = min([keep, *(cursor.segment for cursor in self.cursors.values())])
        confirmed = [number for number in sorted(self.sizes) if number < first]
        kept = sum(self.sizes[number] for number in confirmed)
        deleted = False
        for number in confirmed:
            if kept <= self._settings.retain_bytes and self._bytes_without(keep) <= room:
                break
            kept -= self.sizes[number]
            self._delete(number)
            deleted = True
        return deleted

    def _drop(self, why: str, keep: int) -> None:
        """Deletes the oldest segment with lines that a sink lacks. Raises SpoolFull where that is not wanted."""
        oldest = min(self.sizes)
        if not self._settings.drop_oldest or oldest == keep:
            raise SpoolFull(f"{self._folder}: {why}, and sinks have not confirmed the oldest lines")
        lowest = min(cursor.sequence for cursor in self.cursors.values())
        first = max(lowest, self._starts[oldest].sequence)
        end = self._delete(oldest).sequence
        self.dropped += end - first
        text = f"{end - first} lines were deleted before all sinks had them: {why}"
        self._report(SpoolReport(reason=ReportReason.DROPPED, message=text, first=first, end=end))

    def _delete(self, number: int) -> SpoolPosition:
        """Deletes the oldest segment; returns the begin of the one behind it."""
        following = self._starts[min(other for other in self.sizes if other > number)]
        try:
            # First the anchor: a crash in between leaves a segment before it, which the next start deletes.
            self._marks.set_anchor(following)
            self._disk.unlink(segment_path(self._folder, number))
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            # A full disk has no room for the anchor before the segment is deleted.
            self._disk.unlink(segment_path(self._folder, number))
            self._marks.set_anchor(following)
        self.begin = following
        del self.sizes[number], self._starts[number]
        return following
