"""Segment files: their names, and their frames read back with everything checked.

`SegmentFile.next` gives, from an offset, the next frame, a stretch of damage, or None at the end. It trusts nothing in
the file: lengths are bounded by the file, digests are computed, and behind damage the next frame is searched for by its
magic, its CRC and its digest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from hortus.domains.garden.audit.buffer.spool.frames import (
    HEADER_SIZE,
    MAGIC,
    FrameHeader,
    HashChain,
    decode_header,
)

_NAME = re.compile(r"(\d{16})\.segment")
_WINDOW = 1024 * 1024
"""Bytes that one read asks for: a hundred small frames, or a few of those that a batching API server fills."""


class SpoolFrame(NamedTuple):
    """A frame whose digest is right."""

    offset: int
    header: FrameHeader
    payload: bytes

    @property
    def end(self) -> int:
        """Offset behind the frame."""
        return self.offset + self.header.size


class Damage(NamedTuple):
    """A stretch of a segment that holds no frame as it was written."""

    offset: int
    end: int
    reason: str
    torn: bool = False
    """True where it is the begin of a frame without its rest, as a crash in the middle of a write leaves it."""


def segment_path(folder: Path, number: int) -> Path:
    return folder / f"{number:016d}.segment"


def segment_numbers(folder: Path) -> list[int]:
    """The numbers of the segments in `folder`, ascending."""
    return sorted(int(found[1]) for path in folder.iterdir() if (found := _NAME.fullmatch(path.name)))


class SegmentFile:
    """A segment that is open for reading, up to `limit` or the end of the file. `with`, or `close`."""

    def __init__(self, folder: Path, number: int, chain: HashChain) -> None:
        """Raises FileNotFoundError."""
        self.number = number
        self.path = segment_path(folder, number)
        self._chain = chain
        self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        self._limit = 0
        self._start = 0
        self._window = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._file)

    def size(self) -> int:
        return os.fstat(self._file).st_size

    def next(self, offset: int, *, limit: int | None = None) -> SpoolFrame | Damage | None:
        """The frame or the damage at `offset`; None where only reserved bytes follow, or nothing."""
        end = self._limit = self.size() if limit is None else limit
        raw = self._read(offset, min(HEADER_SIZE, end - offset))
        header = decode_header(raw)
        if header is None:
            return self._without_header(offset, end)
        if offset + header.size > end:
            found = self._search(offset + 1, end)
            reason = f"the frame of {header.size} bytes is cut short"
            return Damage(offset, found, reason, torn=found == end)
        payload = self._read(offset + HEADER_SIZE, header.length)
        if self._chain.holds(raw, header, payload):
            return SpoolFrame(offset, header, payload)
        # The payload of a frame that was torn ends in bytes that were reserved and not written.
        last = offset + header.size
        torn = payload.endswith(b"\0") and self._reserved(last, end)
        return Damage(offset, last, "the bytes of the frame are not those that were written", torn=torn)

    def items(self, offset: int = 0) -> Iterator[SpoolFrame | Damage]:
        """Everything from `offset` to the end of the file."""
        while (item := self.next(offset)) is not None:
            yield item
            offset = item.end

    def _without_header(self, offset: int, end: int) -> Damage | None:
        if offset >= end or self._reserved(offset, end):
            return None
        found = self._search(offset, end)
        return Damage(offset, found, "no frame begins here", torn=found == end and self._begins_frame(offset, end))

    def _begins_frame(self, offset: int, end: int) -> bool:
        """Returns whether all that is written from `offset` on may be the first bytes of a header."""
        written = self._read(offset, min(HEADER_SIZE, end - offset)).rstrip(b"\0")
        return written[: len(MAGIC)] == MAGIC[: len(written)] and self._reserved(min(offset + HEADER_SIZE, end), end)

    def _reserved(self, offset: int, end: int) -> bool:
        """Returns whether nothing was written between the offsets."""
        while offset < end:
            some = self._read(offset, min(_WINDOW, end - offset))
            if not some:
                return True
            if some.count(0) != len(some):
                return False
            offset += len(some)
        return True

    def _search(self, offset: int, end: int) -> int:
        """The offset of the next frame whose digest is right, or `end`."""
        while offset < end:
            some = self._read(offset, min(_WINDOW, end - offset))
            at = some.find(MAGIC)
            if at < 0:
                if len(some) < _WINDOW:
                    return end
                offset += len(some) - len(MAGIC) + 1
                continue
            offset += at
            if self._holds(offset, end):
                return offset
            offset += 1
        return end

    def _holds(self, offset: int, end: int) -> bool:
        raw = self._read(offset, HEADER_SIZE)
        header = decode_header(raw)
        if header is None or offset + header.size > end:
            return False
        return self._chain.holds(raw, header, self._read(offset + HEADER_SIZE, header.length))

    def _read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes, through a window that serves many small frames with one read."""
        if length <= 0:
            return b""
        at = offset - self._start
        if at < 0 or at + length > len(self._window):
            if length >= _WINDOW:
                return os.pread(self._file, length, offset)
            # Not beyond the limit: the bytes there may be written later, and the window would be out of date.
            self._start, at = offset, 0
            self._window = os.pread(self._file, min(_WINDOW, self._limit - offset), offset)
        return self._window[at : at + length]
