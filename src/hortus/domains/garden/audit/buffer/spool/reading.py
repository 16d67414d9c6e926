"""Reading a spool in order, with every frame checked and every gap named.

A reader of a live spool stops at what is committed; without a spool it reads files to their end. It continues behind
damage, and says which sequence numbers it could not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from hortus.domains.garden.audit.buffer.spool.frames import HashChain
from hortus.domains.garden.audit.buffer.spool.marks import SpoolPosition
from hortus.domains.garden.audit.buffer.spool.segments import Damage, SegmentFile, SpoolFrame, segment_numbers


class Gap(NamedTuple):
    """Lines that cannot be read as they were written."""

    segment: int
    offset: int
    first: int
    end: int
    """Sequence number of the next line that can be read; equal to `first` where it is not known."""
    reason: str
    torn: bool = False
    """True at the end of all files, where a frame is being written or a crash ended a write."""


class SpoolBatch(NamedTuple):
    """Lines to be sent together, and the gaps in front of or between them."""

    payloads: tuple[bytes, ...]
    """Whole lines; joined they are NDJSON."""
    firsts: tuple[int, ...]
    """Sequence number of the first line of each payload."""
    first: int
    end: int
    """Sequence number behind the last line."""
    lines: int
    gaps: tuple[Gap, ...]
    after: SpoolPosition
    """The cursor once all of it is confirmed."""
    time: int
    """Nanoseconds since the Unix epoch at which the first line was written."""


class LiveSpool(Protocol):
    """The part of a spool that its readers ask."""

    @property
    def begin(self) -> SpoolPosition: ...

    @property
    def committed(self) -> SpoolPosition: ...


class SpoolReader:
    """Reads on from `position`. Used by one thread at a time; `close` it, or `with`."""

    def __init__(
        self, folder: Path, chain: HashChain, position: SpoolPosition, *, live: LiveSpool | None = None
    ) -> None:
        self.position = position
        self._folder = folder
        self._chain = chain
        self._live = live
        self._segment: SegmentFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._segment is not None:
            self._segment.close()
            self._segment = None

    def read(self, *, most_bytes: int) -> SpoolBatch | None:
        """The next lines, up to `most_bytes` but at least one frame; None where all are read.

        Raises OSError; the next call then begins where this one did.
        """
        start = self.position
        try:
            return self._gathered(most_bytes)
        except OSError:
            self.position = start
            raise

    def _gathered(self, most_bytes: int) -> SpoolBatch | None:
        payloads: list[bytes] = []
        firsts: list[int] = []
        gaps: list[Gap] = []
        first, time, lines, size = self.position.sequence, 0, 0, 0
        for item in self.items():
            if isinstance(item, Gap):
                gaps.append(item)
                continue
            if not payloads:
                first, time = item.header.first, item.header.time
            payloads.append(item.payload)
            firsts.append(item.header.first)
            lines += item.header.lines
            size += len(item.payload)
            if size >= most_bytes:
                break
        if not payloads and not gaps:
            return None
        position = self.position
        return SpoolBatch(tuple(payloads), tuple(firsts), first, position.sequence, lines, tuple(gaps), position, time)

    def items(self) -> Iterator[SpoolFrame | Gap]:
        """Yields what follows and moves `position` behind each item that it yields."""
        while True:
            segment, missing = self._opened()
            if missing is not None:
                yield missing
            if segment is None:
                return
            live = self._live.committed if self._live is not None else None
            limit = live.offset if live is not None and live.segment == segment.number else None
            item = segment.next(self.position.offset, limit=limit)
            if item is None:
                if not self._turned(segment, live):
                    return
            elif isinstance(item, Damage):
                yield self._skipped(segment, item)
            else:
                broken = self._broken(segment, item)
                self._passed(segment, item)
                if broken is not None:
                    yield broken
                yield item

    def _opened(self) -> tuple[SegmentFile | None, Gap | None]:
        """The segment of the position, and a gap where its file is not there."""
        if self._live is not None and self.position.segment < (begin := self._live.begin).segment:
            # The spool dropped lines, and has put a report of that into the chain.
            self.close()
            self.position = begin
        if self._segment is not None and self._segment.number == self.position.segment:
            return self._segment, None
        self.close()
        try:
            self._segment = SegmentFile(self._folder, self.position.segment, self._chain)
            return self._segment, None
        except FileNotFoundError:
            later = [number for number in segment_numbers(self._folder) if number > self.position.segment]
        if not later:
            return None, None
        at = self.position
        gap = Gap(at.segment, 0, at.sequence, at.sequence, f"segment {at.segment} is missing")
        self.position = SpoolPosition(later[0], 0, at.sequence, at.digest)
        self._segment = SegmentFile(self._folder, later[0], self._chain)
        return self._segment, gap

    def _turned(self, segment: SegmentFile, live: SpoolPosition | None) -> bool:
        """Moves to the begin of the next segment, where there is one."""
        if live is not None:
            later = live.segment > segment.number
        else:
            later = any(number > segment.number for number in segment_numbers(self._folder))
        if later:
            self.position = SpoolPosition(segment.number + 1, 0, self.position.sequence, self.position.digest)
        return later

    def _skipped(self, segment: SegmentFile, item: Damage) -> Gap:
        at = self.position
        # Without a digest: the frame behind the damage cannot be compared with the one before it.
        self.position = SpoolPosition(segment.number, item.end, at.sequence, "")
        following = segment.next(item.end, limit=None)
        end = following.header.first if isinstance(following, SpoolFrame) else at.sequence
        torn = item.torn and following is None and segment_numbers(self._folder)[-1] == segment.number
        return Gap(segment.number, item.offset, at.sequence, max(end, at.sequence), item.reason, torn)

    def _broken(self, segment: SegmentFile, item: SpoolFrame) -> Gap | None:
        """A gap where `item` does not follow on the frame that was read before it."""
        at, header = self.position, item.header
        if not at.digest or header.previous.hex() == at.digest:
            return None
        reason = "the chain is broken: the frame does not follow on the one before"
        return Gap(segment.number, item.offset, at.sequence, max(header.first, at.sequence), reason)

    def _passed(self, segment: SegmentFile, item: SpoolFrame) -> None:
        header = item.header
        self.position = SpoolPosition(segment.number, item.end, header.end, header.digest.hex())
