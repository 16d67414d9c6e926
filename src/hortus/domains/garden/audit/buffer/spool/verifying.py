"""Verification of a whole spool: every byte is read, every digest computed, every number compared.

It needs no lock and changes nothing, so that it also runs next to a receiver, or on a copy; it then ends where the
files end. It finds lines that were altered, removed, added or moved. A folder alone cannot show that it was replaced as
a whole: by its earlier state, by a new spool, or, without a key, by one of which all digests were computed again. A
place that was noted elsewhere can.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from hortus.domains.garden.audit.buffer.spool.disk import SpoolDisk
from hortus.domains.garden.audit.buffer.spool.frames import FrameKind, HashChain
from hortus.domains.garden.audit.buffer.spool.marks import HEAD, FoundMark, SpoolMarks
from hortus.domains.garden.audit.buffer.spool.reading import Gap, SpoolReader
from hortus.domains.garden.audit.buffer.spool.recovery import genesis
from hortus.domains.garden.audit.buffer.spool.segments import SpoolFrame, segment_numbers


class Verification(msgspec.Struct, kw_only=True):
    """The result; `findings` is empty where everything is as it was written."""

    spool: str
    keyed: bool
    first: int = 0
    """Sequence number of the oldest line."""
    end: int = 0
    """Sequence number behind the last line."""
    lines: int = 0
    frames: int = 0
    segments: int = 0
    bytes: int = 0
    head: str = ""
    """Digest of the last frame, to be noted for a later `expected`."""
    reports: list[str] = []
    """Lines that the spool wrote about itself."""
    notes: list[str] = []
    """Bytes at the end that were never acknowledged: a write that is under way, or that a crash ended."""
    findings: list[str] = []


def verify(folder: Path, chain: HashChain, *, expected: Mapping[int, str] | None = None) -> Verification:
    """`expected` are digests by the sequence number behind their frame, empty where the number alone is known.

    Raises SpoolError, OSError.
    """
    marks = SpoolMarks(folder, chain, SpoolDisk())
    while True:
        before = marks.anchor()
        found = _verified(folder, chain, marks, before, expected or {})
        # A receiver that runs has deleted its oldest segments meanwhile: they are missing, and that is in order.
        if not found.findings or marks.anchor() == before:
            return found


def _verified(
    folder: Path, chain: HashChain, marks: SpoolMarks, anchor: FoundMark, expected: Mapping[int, str]
) -> Verification:
    identity = marks.identify(create=False)
    found = Verification(spool=identity.id, keyed=identity.keyed)
    begin = anchor.position or genesis(identity, chain)
    if anchor.problem:
        found.findings.append(anchor.problem)
    # Before the frames are read: a receiver that runs moves them on.
    head = marks.head()
    known = {HEAD: head} | {f"the cursor of {sink}": marks.cursor(sink) for sink in marks.cursors()}
    numbers = [number for number in segment_numbers(folder) if number >= begin.segment]
    found.segments, found.first, found.end, found.head = len(numbers), begin.sequence, begin.sequence, begin.digest
    open_digests = {sequence: digest for sequence, digest in expected.items() if digest}
    _compare(found, begin.sequence, begin.digest, open_digests)
    with SpoolReader(folder, chain, begin) as reader:
        for item in reader.items():
            if isinstance(item, Gap):
                (found.notes if item.torn else found.findings).append(_described(item))
            else:
                _count(found, item)
                _compare(found, item.header.end, item.header.digest.hex(), open_digests)
    for sequence, digest in sorted(open_digests.items()):
        found.findings.append(f"no frame ends before sequence {sequence}, where {digest} is expected")
    for sequence, digest in sorted(expected.items()):
        if not digest and sequence > found.end:
            found.findings.append(f"the spool ends at sequence {found.end}, and was at {sequence} before")
    # A receiver writes both as it opens a spool for the first time.
    if not numbers:
        found.findings.append("no segment is there: all lines may have been removed")
    if head.position is None and not head.problem:
        found.findings.append(f"{HEAD} is missing: lines at the end, or all of them, may have been removed")
    _compare_marks(found, known)
    return found


def _count(found: Verification, item: SpoolFrame) -> None:
    header = item.header
    if header.first < found.end:
        found.findings.append(f"sequence numbers go back from {found.end} to {header.first}")
    if header.kind == FrameKind.REPORT:
        found.reports += item.payload.decode(errors="replace").splitlines()
    if item.payload.count(b"\n") != header.lines:
        found.findings.append(f"the frame at sequence {header.first} does not hold {header.lines} lines")
    found.frames += 1
    found.lines += header.lines
    found.bytes += header.size
    found.end, found.head = header.end, header.digest.hex()


def _compare(found: Verification, sequence: int, digest: str, expected: dict[int, str]) -> None:
    wanted = expected.pop(sequence, None) if expected else None
    if wanted is not None and wanted != digest:
        found.findings.append(f"the digest before sequence {sequence} is {digest}, expected is {wanted}")


def _compare_marks(found: Verification, known: Mapping[str, FoundMark]) -> None:
    """Compares the end with the places that were acknowledged and confirmed."""
    for name, mark in known.items():
        if mark.problem:
            found.findings.append(mark.problem)
        elif mark.position is not None and mark.position.sequence > found.end:
            lost = mark.position.sequence - found.end
            found.findings.append(f"the last {lost} lines are missing: {name} is at sequence {mark.position.sequence}")


def _described(gap: Gap) -> str:
    lost = f"{gap.end - gap.first} lines from sequence {gap.first} on cannot be read" if gap.end > gap.first else ""
    where = f"segment {gap.segment}, offset {gap.offset}: {gap.reason}"
    return f"{where}; {lost}" if lost else where
