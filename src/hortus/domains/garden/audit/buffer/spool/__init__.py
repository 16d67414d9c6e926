"""The spool: lines on a disk, in order, chained by digests, bounded. It knows no network and no sink.

`Spool` writes, `SpoolReader` reads, `verify` checks all of it. The format of the files is described in `frames`.
"""

from hortus.domains.garden.audit.buffer.spool.disk import FolderSpace, SpoolDisk
from hortus.domains.garden.audit.buffer.spool.frames import HashChain
from hortus.domains.garden.audit.buffer.spool.held import SpoolFull, SpoolSettings
from hortus.domains.garden.audit.buffer.spool.marks import SpoolError, SpoolMarks, SpoolPosition, check_sink_name
from hortus.domains.garden.audit.buffer.spool.reading import Gap, SpoolBatch, SpoolReader
from hortus.domains.garden.audit.buffer.spool.recovery import genesis
from hortus.domains.garden.audit.buffer.spool.reports import ReportReason, SpoolReport, is_report
from hortus.domains.garden.audit.buffer.spool.spool import Spool
from hortus.domains.garden.audit.buffer.spool.verifying import Verification, verify

__all__ = [
    "FolderSpace",
    "Gap",
    "HashChain",
    "ReportReason",
    "Spool",
    "SpoolBatch",
    "SpoolDisk",
    "SpoolError",
    "SpoolFull",
    "SpoolMarks",
    "SpoolPosition",
    "SpoolReader",
    "SpoolReport",
    "SpoolSettings",
    "Verification",
    "check_sink_name",
    "genesis",
    "is_report",
    "verify",
]
