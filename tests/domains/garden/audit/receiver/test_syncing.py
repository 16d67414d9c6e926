"""The sync policy `interval`: acknowledged at once, on the disk a second later, also when nothing follows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.domains.garden.audit.spool.spools import BROKEN, PLAIN, SINK, SMALL, FaultyDisk, line
from tests.waiting import until

from hortus.domains.garden.audit.buffer.committing import Committer, SyncPolicy
from hortus.domains.garden.audit.buffer.events import EventLines
from hortus.domains.garden.audit.buffer.spool import Spool
from hortus.testing import FakeClock


@asynccontextmanager
async def committing(folder: Path, disk: FaultyDisk, clock: FakeClock) -> AsyncIterator[tuple[Committer, Spool]]:
    spool = Spool(folder, SMALL, sinks=[SINK], chain=PLAIN, clock=clock, disk=disk)
    committer = Committer(spool, SyncPolicy.INTERVAL, clock=clock)
    committer.start()
    try:
        yield committer, spool
    finally:
        await committer.stop()
        spool.close()


async def test_the_last_commit_before_silence_is_synced_after_a_second(tmp_path: Path) -> None:
    disk, clock = FaultyDisk(), FakeClock()
    async with committing(tmp_path, disk, clock) as (committer, spool):
        before = disk.syncs
        for number in range(3):
            await committer.commit(EventLines(line(number), 1))
        assert (disk.syncs - before, spool.flushed, spool.committed.sequence) == (0, False, 3)
        await until(lambda: clock.sleepers)
        await clock.advance(1.0)
        await until(lambda: spool.flushed)
        assert disk.syncs - before == 1


async def test_a_sync_that_fails_is_repeated_a_second_later(tmp_path: Path) -> None:
    disk, clock = FaultyDisk(), FakeClock()
    async with committing(tmp_path, disk, clock) as (committer, spool):
        await committer.commit(EventLines(line(0), 1))
        disk.failing = {"sync": BROKEN}
        await until(lambda: clock.sleepers)
        await clock.advance(1.0)
        await until(lambda: clock.sleepers)
        assert (spool.flushed, spool.committed.sequence) == (False, 1)
        disk.failing = {}
        await clock.advance(1.0)
        await until(lambda: spool.flushed)


async def test_a_stop_syncs_what_was_committed(tmp_path: Path) -> None:
    disk, clock = FaultyDisk(), FakeClock()
    async with committing(tmp_path, disk, clock) as (committer, spool):
        await committer.commit(EventLines(line(0), 1))
        assert not spool.flushed
    assert spool.flushed
