"""The spool: a bounded, chained log of lines on the disk, written by one process and read by its sinks.

One thread appends and syncs; others read what is committed and move cursors. `append` writes a frame, `sync` makes all
appended frames durable and visible to readers: only then may lines be acknowledged. A failed write leaves the spool as
it was. After a failed sync the frames since the last one are taken back and the segment is left: the kernel may have
dropped their pages, so a second sync of the same file would prove nothing.

Segments that all sinks have confirmed are kept for replay up to `retain_bytes`, then deleted. Where the bound or the
disk leaves no room, `append` raises SpoolFull, or deletes the oldest segments, as the settings say. A deletion of
unconfirmed lines is counted, and a report in the chain names their sequence numbers.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

import structlog

from hortus.domains.garden.audit.buffer.spool.disk import SpoolDisk
from hortus.domains.garden.audit.buffer.spool.frames import HEADER_SIZE, FrameKind, HashChain, encode_header
from hortus.domains.garden.audit.buffer.spool.held import NO_SPACE, HeldSegments, SpoolFull, SpoolSettings
from hortus.domains.garden.audit.buffer.spool.marks import IDENTITY, SpoolError, SpoolMarks, SpoolPosition
from hortus.domains.garden.audit.buffer.spool.recovery import (
    FIRST_SEGMENT,
    Recovered,
    genesis,
    recovered,
    segment_start,
)
from hortus.domains.garden.audit.buffer.spool.reports import ReportReason, SpoolReport, report_line
from hortus.domains.garden.audit.buffer.spool.segments import Damage, segment_numbers, segment_path
from hortus.kube.clock import Clock
from hortus.kube.objects import format_micro_time

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_LOCK = ".lock"
_HEAD_EVERY = 1.0
"""Seconds between two writes of the head: the most that can be cut off without a trace in it."""
_KEPT_TAILS = 16
"""Files with bytes that were set aside; the oldest are deleted."""


class Spool:
    """An open spool; `close` it. Raises SpoolError, OSError when it cannot be opened."""

    def __init__(
        self,
        folder: Path,
        settings: SpoolSettings,
        *,
        sinks: Sequence[str],
        chain: HashChain,
        clock: Clock,
        disk: SpoolDisk | None = None,
    ) -> None:
        self.folder = folder
        self.chain = chain
        self.marks = SpoolMarks(folder, chain, disk or SpoolDisk())
        self.full = False
        """True from a refused append to the next one that is not, or to a confirmation, which may make room."""
        self._settings = settings
        self._clock = clock
        self._disk = disk or SpoolDisk()
        self._held = HeldSegments(folder, settings, self.marks, self._disk, self.report)
        self._pending: list[SpoolReport] = []
        self._written: list[SpoolReport] = []
        """Reports that are appended and not committed."""
        self._file = -1
        self._committed = self._end = SpoolPosition(0, 0, 0, "")
        self._leave_segment = False
        """True where the next frame goes to a new segment."""
        self._flushed = True
        """False where committed frames of the segment may not be on the disk."""
        self._head_at = -_HEAD_EVERY
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = _locked(folder / _LOCK)
        try:
            self._open(sinks)
        except BaseException:
            self._release()
            raise

    # Reading.

    @property
    def committed(self) -> SpoolPosition:
        """The place up to which everything is durable and may be read."""
        return self._committed

    @property
    def flushed(self) -> bool:
        """False where committed lines may not be on the disk: they were committed without `durable`."""
        return self._flushed

    @property
    def begin(self) -> SpoolPosition:
        """The oldest place that is there."""
        return self._held.begin

    def cursor(self, sink: str) -> SpoolPosition:
        """The place up to which `sink` has confirmed all lines."""
        return self._held.cursor(sink)

    def confirm(self, sink: str, position: SpoolPosition) -> None:
        """Moves the cursor of `sink`. Raises OSError where its file cannot be written.

        A later start of the process then sends some lines again; this one goes on, so that room is made.
        """
        self._held.cursors[sink] = position
        # Clients that ask for this before they send would otherwise never send the append that clears it.
        self.full = False
        self.marks.set_cursor(sink, position)

    @property
    def dropped(self) -> int:
        """Lines that were deleted before all sinks had them, since the start."""
        return self._held.dropped

    @property
    def largest_payload(self) -> int:
        """Bytes of lines that fit into one frame at any time, once what may be deleted is deleted."""
        # The segment that is written is kept meanwhile, and may itself hold as much.
        return self._settings.max_bytes // 2 - HEADER_SIZE

    def bytes_used(self) -> int:
        """Bytes of all segments, with reserved ones."""
        return self._held.bytes()

    # Writing, by one thread.

    def append(self, parts: Sequence[bytes], count: int) -> None:
        """Writes one frame with `count` lines. Raises SpoolFull, OSError; then nothing was written."""
        self._append_reports()
        self._append(parts, count, FrameKind.EVENTS)

    def report(self, report: SpoolReport) -> None:
        """Adds a report with the next append."""
        _log.warning("the spool reports", reason=report.reason.value, message=report.message)
        self._pending.append(report)

    def sync(self, *, durable: bool = True) -> None:
        """Commits all appended frames. Raises OSError; then none of them is there.

        Without `durable` they survive the end of this process, but not that of the machine, until the next one with it.
        """
        self._append_reports()
        self._commit(durable=durable)

    def _commit(self, *, durable: bool = True) -> None:
        if self._end == self._committed and (self._flushed or not durable):
            return
        try:
            if durable:
                self._disk.sync(self._file)
            self._flushed = durable
        except OSError:
            self._take_back()
            raise
        self._committed = self._end
        self._written.clear()
        self._write_head()

    def close(self) -> None:
        """Closes the files, with the head as it is. Frames that are not committed are taken back."""
        if self._end != self._committed:
            self._take_back()
        self._write_head(force=True)
        self._release()

    # Opening.

    def _open(self, sinks: Sequence[str]) -> None:
        is_new = not (self.folder / IDENTITY).exists()
        if is_new and segment_numbers(self.folder):
            raise SpoolError(f"{self.folder / IDENTITY} is missing: put it back, or use an empty folder")
        self.identity = self.marks.identify(create=True)
        anchor = self.marks.anchor()
        if anchor.problem:
            self.report(SpoolReport(reason=ReportReason.MARK, message=anchor.problem))
        begin = anchor.position or genesis(self.identity, self.chain)
        for number in segment_numbers(self.folder):
            if number < begin.segment:
                self._disk.unlink(segment_path(self.folder, number))
        found = recovered(self.folder, begin, self.chain, self.marks, is_new=is_new)
        for report in found.reports:
            self.report(report)
        self._committed = self._end = found.end
        for number in found.numbers:
            self._held.add(segment_start(self.folder, number), segment_path(self.folder, number).stat().st_size)
        if found.numbers:
            self._continue(found)
        else:
            self._create(max(begin.segment, FIRST_SEGMENT))
        self._pull_back_cursors()
        self._held.cursors = {sink: self.marks.cursor(sink).position or self.begin for sink in sinks}
        self._commit_reports()
        self._write_head(force=True)

    def _commit_reports(self) -> None:
        try:
            self.sync()
        except (OSError, SpoolFull) as error:
            _log.warning("reports wait for room in the spool", error=str(error), waiting=len(self._pending))

    def _continue(self, found: Recovered) -> None:
        """Opens the last segment for writing, without the bytes behind its last frame."""
        end = found.end
        number = end.segment
        self._file = self._disk.open(segment_path(self.folder, number))
        if found.tail is not None:
            self._set_aside(number, found.tail)
        self._disk.truncate(self._file, end.offset)
        # The process before may have ended between a write and its sync, and the sinks will confirm what is read now.
        self._disk.sync(self._file)
        self._held.sizes[number] = end.offset
        # New frames go to a segment of their own, whose room is reserved as a whole.
        self._leave_segment = True
        if not end.offset:
            self._held.add(end, 0)

    def _set_aside(self, number: int, tail: Damage) -> None:
        """Keeps the bytes behind the last frame as evidence."""
        content = os.pread(self._file, tail.end - tail.offset, tail.offset).rstrip(b"\0")
        self._disk.replace(self.folder / f"torn-{number:016d}-{tail.offset}.bin", content, durable=True)
        kept = sorted(self.folder.glob("torn-*.bin"), key=lambda path: path.stat().st_mtime)
        for path in kept[:-_KEPT_TAILS]:
            self._disk.unlink(path)

    def _pull_back_cursors(self) -> None:
        """Moves cursors that are beyond the end to it, on the disk too: later frames will be where they point."""
        for sink in self.marks.cursors():
            found = self.marks.cursor(sink).position
            if found is not None and (found.segment, found.offset) > (self._end.segment, self._end.offset):
                self.marks.set_cursor(sink, self._end, durable=True)

    # Writing.

    def _append_reports(self) -> None:
        while self._pending:
            report = self._pending[0]
            line = report_line(report, spool=self.identity.id, timestamp=format_micro_time(self._clock.now()))
            self._append((line,), 1, FrameKind.REPORT)
            # Not before: the append may have dropped lines and added a report of that.
            self._pending.remove(report)
            self._written.append(report)

    def _append(self, parts: Sequence[bytes], count: int, kind: FrameKind) -> None:
        size = HEADER_SIZE + sum(map(len, parts))
        if self._leave_segment or self._end.offset + size > self._held.sizes[self._end.segment]:
            try:
                self._rotate(size)
            except SpoolFull:
                self.full = True
                raise
        end = self._end
        time = int(self._clock.now() * 1e9)
        previous = bytes.fromhex(end.digest)
        header, digest = encode_header(
            kind, parts, count=count, first=end.sequence, time=time, previous=previous, chain=self.chain
        )
        try:
            self._disk.write(self._file, (header, *parts), end.offset)
        except OSError as error:
            self._take_back(end)
            if error.errno in NO_SPACE:
                self.full = True
                raise SpoolFull(f"{self.folder}: {error.strerror}") from error
            raise
        self.full = False
        self._end = SpoolPosition(end.segment, end.offset + size, end.sequence + count, digest.hex())

    def _take_back(self, to: SpoolPosition | None = None) -> None:
        """Forgets the bytes behind `to`, or all that are not committed, and leaves the segment."""
        if to is None:
            self._pending[:0] = self._written
            self._written.clear()
        self._end = to or self._committed
        self._leave_segment = True
        try:
            self._disk.truncate(self._file, self._end.offset)
            self._held.sizes[self._end.segment] = self._end.offset
        except OSError as error:
            # The next start finds the bytes behind the last frame of this segment, and sets them aside.
            _log.error("a segment cannot be cut", segment=self._end.segment, error=str(error))

    def _rotate(self, size: int) -> None:
        """Goes on in a new segment with room for `size` bytes. Raises SpoolFull, OSError."""
        self._commit()
        wanted = max(size, self._settings.segment_bytes)
        used, number = self._end.offset, self._end.segment
        self._held.make_room(self._settings.max_bytes - wanted - used, keep=number)
        if used < self._held.sizes[number]:
            self._disk.truncate(self._file, used)
            self._held.sizes[number] = used
        while True:
            try:
                self._create(number + 1, wanted)
                return
            except OSError as error:
                if error.errno not in NO_SPACE:
                    raise
                self._held.free_disk(error, keep=number)

    def _create(self, number: int, size: int = 0) -> None:
        size = size or self._settings.segment_bytes
        path = segment_path(self.folder, number)
        file = self._disk.create(path, size)
        try:
            self._disk.sync_folder(self.folder)
        except OSError:
            # The next attempt makes a file of this name.
            self._disk.close(file)
            self._disk.unlink(path)
            raise
        if self._file >= 0:
            self._disk.close(self._file)
        self._file = file
        self._committed = self._end = SpoolPosition(number, 0, self._end.sequence, self._end.digest)
        self._held.add(self._end, size)
        self._leave_segment = False

    def _write_head(self, *, force: bool = False) -> None:
        now = self._clock.monotonic()
        if force or now - self._head_at >= _HEAD_EVERY:
            try:
                self.marks.set_head(self._committed)
            except OSError as error:
                _log.warning("the head of the spool cannot be written", error=str(error))
            self._head_at = now

    def _release(self) -> None:
        if self._file >= 0:
            self._disk.close(self._file)
            self._file = -1
        os.close(self._lock)


def _locked(path: Path) -> int:
    """The lock of a spool; the kernel releases it when the process ends. Raises SpoolError when it is taken."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise SpoolError(f"{path.parent} is in use by another process: stop it, or use another folder") from None
    return file
