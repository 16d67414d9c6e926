"""Audit events through the receiver: `python -m tests.benchmarks.audit 10000000 --kills 60`.

Prints whether all acknowledged events arrived, the rates, and what the disk does with frames of the same size.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import tempfile
import time
from pathlib import Path

from tests.domains.garden.audit.proof.events import event
from tests.domains.garden.audit.proof.proof import ProofRun

from hortus.domains.garden.audit.buffer.spool import HashChain, Spool, SpoolSettings
from hortus.kube.clock import SystemClock


def disk_rate(folder: Path, size: int, *, total: int) -> float:
    """Bytes per second of writes of `size` bytes to reserved room, each synced."""
    block = os.urandom(size)
    file = os.open(folder / "raw", os.O_RDWR | os.O_CREAT, 0o600)
    os.posix_fallocate(file, 0, total)
    began = time.monotonic()
    for offset in range(0, total - size, size):
        os.pwrite(file, block, offset)
        os.fdatasync(file)
    seconds = time.monotonic() - began
    os.close(file)
    (folder / "raw").unlink()
    return total / seconds


def spool_rate(folder: Path, lines: int, *, total: int) -> tuple[float, float]:
    """Bytes and events per second of a spool in this process, with frames of `lines` events, each synced."""
    payload = b"".join(event(number) + b"\n" for number in range(lines))
    bounds = SpoolSettings(max_bytes=2 * total + (256 << 20), segment_bytes=64 << 20, retain_bytes=total)
    spool = Spool(folder / "rate", bounds, sinks=["none"], chain=HashChain(), clock=SystemClock())
    began = time.monotonic()
    for _ in range(total // len(payload)):
        spool.append((payload,), lines)
        spool.sync()
    seconds = time.monotonic() - began
    spool.close()
    shutil.rmtree(folder / "rate")
    return total / seconds, total / len(payload) * lines / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--each", type=int, default=400, help="events of a request")
    parser.add_argument("--sync", default="always")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="audit-", dir=os.environ.get("AUDIT_FOLDER")))
    try:
        for lines in (1, 40, 400, 4000):
            size = len(event(0)) * lines
            total = min(size * 500, 512 << 20)
            raw = disk_rate(folder, size, total=total)
            rate, events = spool_rate(folder, lines, total=total)
            print(
                f"frames of {lines:>4} events, {size:>8} bytes: disk {raw / 1e6:7.1f} MB/s, "
                f"spool {rate / 1e6:7.1f} MB/s, {events:9.0f} events/s",
                flush=True,
            )
        found = asyncio.run(ProofRun(folder / "run", given.events, each=given.each, sync=given.sync).run(given.kills))
        kept, rate = found.verification, found.events / found.seconds
        print(f"{found.events} events, {found.missing} missing, {found.twice} arrived twice, kills {found.kills}")
        print(f"{found.seconds:.1f} s, {rate:.0f} events/s, {found.bytes / found.seconds / 1e6:.1f} MB/s")
        print(f"all acknowledged after {found.acknowledged:.1f} s")
        print(f"verification: {kept.lines} lines held of {kept.end}, findings {kept.findings}")
        print(f"reports of the spool: {len(kept.reports)}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
