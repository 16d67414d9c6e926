"""Spools for tests: small segments, a disk that fails on demand, and all lines read back."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hortus.domains.garden.audit.buffer.spool import Gap, HashChain, Spool, SpoolDisk, SpoolReader, SpoolSettings
from hortus.domains.garden.audit.buffer.spool.marks import SpoolMarks
from hortus.domains.garden.audit.buffer.spool.recovery import genesis
from hortus.domains.garden.audit.buffer.spool.reports import KIND
from hortus.testing import FakeClock

SMALL = SpoolSettings(max_bytes=64 * 1024, segment_bytes=8 * 1024, retain_bytes=64 * 1024)
SINK = "archive"
PLAIN = HashChain()
KEYED = HashChain(b"a key of thirty-two bytes or so.")


class FaultyDisk(SpoolDisk):
    """Fails the operations that `failing` names, with the error that it gives."""

    def __init__(self) -> None:
        self.failing: dict[str, int] = {}
        self.partial = False
        """True writes half of the bytes before it fails."""
        self.syncs = 0

    def _may_fail(self, name: str) -> None:
        number = self.failing.get(name)
        if number is not None:
            raise OSError(number, os.strerror(number))

    def reserve(self, file: int, size: int) -> None:
        self._may_fail("reserve")
        super().reserve(file, size)

    def write(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        if "write" in self.failing and self.partial:
            whole = b"".join(parts)
            super().write(file, (whole[: len(whole) // 2],), offset)
        self._may_fail("write")
        super().write(file, parts, offset)

    def sync(self, file: int) -> None:
        self._may_fail("sync")
        super().sync(file)
        self.syncs += 1

    def sync_folder(self, folder: Path) -> None:
        self._may_fail("sync_folder")
        super().sync_folder(folder)

    def replace(self, path: Path, content: bytes, *, durable: bool) -> None:
        self._may_fail("replace")
        super().replace(path, content, durable=durable)


def opened(
    folder: Path,
    settings: SpoolSettings = SMALL,
    *,
    chain: HashChain = PLAIN,
    disk: SpoolDisk | None = None,
    sinks: Sequence[str] = (SINK,),
) -> Spool:
    return Spool(folder, settings, sinks=sinks, chain=chain, clock=FakeClock(), disk=disk)


def line(number: int, size: int = 100) -> bytes:
    return b'{"auditID":"%06d","pad":"%s"}\n' % (number, b"x" * size)


def put(spool: Spool, *numbers: int, size: int = 100) -> None:
    """Each number in a frame of its own, all of them committed."""
    for number in numbers:
        spool.append((line(number, size),), 1)
    spool.sync()


def read_back(folder: Path, *, chain: HashChain = PLAIN) -> tuple[list[int], list[Gap], list[str]]:
    """The numbers of all lines of a spool from its begin, the gaps, and the reasons of its own reports."""
    marks = SpoolMarks(folder, chain, SpoolDisk())
    begin = marks.anchor().position or genesis(marks.identify(create=False), chain)
    numbers: list[int] = []
    gaps: list[Gap] = []
    reports: list[str] = []
    with SpoolReader(folder, chain, begin) as reader:
        for item in reader.items():
            if isinstance(item, Gap):
                gaps.append(item)
                continue
            for text in item.payload.splitlines():
                found = msgspec.json.decode(text)
                if found.get("kind") == KIND:
                    reports.append(found["report"]["reason"])
                else:
                    numbers.append(int(found["auditID"]))
    return numbers, gaps, reports


def confirm_all(spool: Spool, sink: str = SINK) -> None:
    spool.confirm(sink, spool.committed)


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.segment"))


NO_SPACE = errno.ENOSPC
BROKEN = errno.EIO
