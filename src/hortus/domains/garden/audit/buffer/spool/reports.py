"""Lines that the spool writes about itself: damage, lines that were lost, lines that were dropped.

They stand in the chain between the events and are delivered like events, so that each sink receives, at its place, the
reason for which lines are missing.
"""

from __future__ import annotations

import enum

import msgspec

API_VERSION = "audit.hortus.dev/v1alpha1"
KIND = "SpoolReport"


class ReportReason(enum.Enum):
    TORN_TAIL = "TornTail"
    """A crash ended a write: bytes that were never acknowledged were set aside."""
    ALTERED = "Altered"
    """Bytes are not those that were written."""
    CUT_SHORT = "CutShort"
    """Lines that were acknowledged are not there."""
    DROPPED = "Dropped"
    """The spool was full, and its oldest lines were deleted before all sinks had them."""
    REFUSED = "Refused"
    """A sink refused a line for itself, and it was set aside."""
    MARK = "Mark"
    """A file next to the segments is missing or was altered."""


class SpoolReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One report. Sequence numbers are those of the lines that it is about; `end` is behind the last one."""

    reason: ReportReason
    message: str
    first: int = 0
    end: int = 0


class _Line(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    kind: str
    api_version: str
    spool: str
    stage_timestamp: str
    report: SpoolReport


class _Kind(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""


_kinds = msgspec.json.Decoder(_Kind)


def is_report(line: bytes) -> bool:
    """Returns whether `line` is a report of a spool."""
    try:
        found = _kinds.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return (found.kind, found.api_version) == (KIND, API_VERSION)


def report_line(report: SpoolReport, *, spool: str, timestamp: str) -> bytes:
    """The line of `report`, with its line end."""
    line = _Line(kind=KIND, api_version=API_VERSION, spool=spool, stage_timestamp=timestamp, report=report)
    return msgspec.json.encode(line) + b"\n"
