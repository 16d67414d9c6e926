"""The state of a spool at its start, found from its files and nothing else.

Only the last segment is read as a whole: earlier ones are read, and checked, on their way to the sinks and by the
verification. Nothing is changed here; the spool acts on what is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hortus.domains.garden.audit.buffer.spool.frames import HEADER_SIZE, HashChain, decode_header
from hortus.domains.garden.audit.buffer.spool.marks import SpoolIdentity, SpoolMarks, SpoolPosition
from hortus.domains.garden.audit.buffer.spool.reports import ReportReason, SpoolReport
from hortus.domains.garden.audit.buffer.spool.segments import Damage, SegmentFile, segment_numbers, segment_path

FIRST_SEGMENT = 1


class Recovered(NamedTuple):
    """The state to continue from."""

    numbers: Sequence[int]
    """The segments that belong to the spool."""
    end: SpoolPosition
    """The place behind the last frame; its sequence number is beyond all that were ever acknowledged."""
    tail: Damage | None
    """Bytes behind the last frame."""
    reports: Sequence[SpoolReport]


def genesis(identity: SpoolIdentity, chain: HashChain) -> SpoolPosition:
    """The begin of a spool from which nothing was deleted."""
    return SpoolPosition(FIRST_SEGMENT, 0, 0, chain.digest(identity.id.encode(), ()).hex())


def segment_start(folder: Path, number: int) -> SpoolPosition:
    """The begin of a segment by its first header; without a digest where that is damaged."""
    with segment_path(folder, number).open("rb") as file:
        header = decode_header(file.read(HEADER_SIZE))
    if header is None:
        return SpoolPosition(number, 0, 0, "")
    return SpoolPosition(number, 0, header.first, header.previous.hex())


def recovered(folder: Path, begin: SpoolPosition, chain: HashChain, marks: SpoolMarks, *, is_new: bool) -> Recovered:
    """`begin` is the begin of the chain: genesis, or the anchor. A spool that `is_new` has no head yet."""
    numbers = [number for number in segment_numbers(folder) if number >= begin.segment]
    end, tail = _tail(folder, numbers, begin, chain)
    reports: list[SpoolReport] = []
    if tail is not None:
        reports.append(_tail_report(end, tail))
    acknowledged = end.sequence
    head = marks.head()
    if head.problem or (head.position is None and not is_new):
        reports.append(_mark(head.problem or f"{folder / 'head.json'} is missing"))
    known = [head.position]
    for sink in marks.cursors():
        cursor = marks.cursor(sink)
        known.append(cursor.position)
        if cursor.problem:
            reports.append(_mark(cursor.problem))
    acknowledged = max([end.sequence, *(each.sequence for each in known if each is not None)])
    if acknowledged > end.sequence:
        lost = acknowledged - end.sequence
        text = f"{lost} lines that were acknowledged are not there: the spool ends before sequence {acknowledged}"
        reports.append(SpoolReport(reason=ReportReason.CUT_SHORT, message=text, first=end.sequence, end=acknowledged))
        end = SpoolPosition(end.segment, end.offset, acknowledged, end.digest)
    return Recovered(numbers, end, tail, reports)


def _tail(
    folder: Path, numbers: Sequence[int], begin: SpoolPosition, chain: HashChain
) -> tuple[SpoolPosition, Damage | None]:
    """The end of the last segment; where that has no frame, with the digest of the one before."""
    if not numbers:
        return begin, None
    last = numbers[-1]
    end, tail = _end_of(folder, last, chain)
    for number in reversed(numbers[:-1]):
        if end.digest:
            break
        before, _ = _end_of(folder, number, chain)
        end = SpoolPosition(last, end.offset, before.sequence, before.digest)
    if not end.digest:
        end = SpoolPosition(last, end.offset, begin.sequence, begin.digest)
    return end, tail


def _end_of(folder: Path, number: int, chain: HashChain) -> tuple[SpoolPosition, Damage | None]:
    """The place behind the last frame of a segment, without a digest where it has none, and the bytes behind it."""
    end, tail = SpoolPosition(number, 0, 0, ""), None
    with SegmentFile(folder, number, chain) as segment:
        for item in segment.items():
            if isinstance(item, Damage):
                tail = item if tail is None else Damage(tail.offset, item.end, tail.reason)
            else:
                end, tail = SpoolPosition(number, item.end, item.header.end, item.header.digest.hex()), None
    return end, tail


def _tail_report(end: SpoolPosition, tail: Damage) -> SpoolReport:
    where = f"{tail.end - tail.offset} bytes at offset {tail.offset} of segment {end.segment}: {tail.reason}"
    if tail.torn:
        text = f"a crash ended a write that was not acknowledged; set aside {where}"
        return SpoolReport(reason=ReportReason.TORN_TAIL, message=text, first=end.sequence, end=end.sequence)
    return SpoolReport(reason=ReportReason.ALTERED, message=where, first=end.sequence, end=end.sequence)


def _mark(problem: str) -> SpoolReport:
    return SpoolReport(reason=ReportReason.MARK, message=problem)
