"""The cache on disk: private, verified, shared, and whole after a kill."""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import os
import random
import signal
import stat
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from hortus.render.artifacts import (
    ArtifactCache,
    CacheFailed,
    CacheLimits,
    Digest,
    DigestMismatch,
    Sink,
    Unavailable,
    digest_of,
)
from hortus.testing import FakeClock

DATA = bytes(range(256)) * 400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


class Source:
    """Fills sinks with `data`, as a download would: from where the sink is."""

    def __init__(self, data: bytes = DATA, *, fails: int = 0) -> None:
        self.data = data
        self.calls = 0
        self.fails = fails
        self.starts: list[int] = []

    async def __call__(self, sink: Sink) -> None:
        self.calls += 1
        self.starts.append(sink.size)
        for begin in range(sink.size, len(self.data), 10_000):
            await asyncio.sleep(0)
            sink.write(self.data[begin : begin + 10_000])
            if self.fails and sink.size >= len(self.data) // 2:
                self.fails -= 1
                raise Unavailable("test", "cut off")


def stored(folder: Path) -> Iterator[Path]:
    return (path for path in (folder / "blobs").rglob("*") if path.is_file())


async def test_what_was_fetched_once_is_read_from_disk(folder: Path) -> None:
    cache, source = ArtifactCache(folder), Source()
    for _ in range(3):
        assert await cache.fetch(digest_of(DATA), source) == DATA
    assert source.calls == 1
    assert await ArtifactCache(folder).fetch(digest_of(DATA), source) == DATA
    assert source.calls == 1


async def test_sha512_is_known_too(folder: Path) -> None:
    digest = Digest("sha512:" + hashlib.sha512(DATA).hexdigest())
    assert await ArtifactCache(folder).fetch(digest, Source()) == DATA


async def test_files_are_for_their_owner_alone(folder: Path) -> None:
    before = os.umask(0)
    try:
        await ArtifactCache(folder).fetch(digest_of(DATA), Source())
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_dir()}
    assert modes | {stat.S_IMODE(folder.stat().st_mode)} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in stored(folder)} == {0o600}


def test_a_folder_that_others_may_enter_is_refused(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(CacheFailed, match="chmod 700"):
        ArtifactCache(folder)
    file = folder / "file"
    file.touch()
    with pytest.raises(CacheFailed):
        ArtifactCache(file)


async def test_callers_at_once_share_one_download(folder: Path) -> None:
    cache, source = ArtifactCache(folder), Source()
    found = await asyncio.gather(*(cache.fetch(digest_of(DATA), source) for _ in range(20)))
    assert set(found) == {DATA}
    assert source.calls == 1


async def test_a_caller_that_gives_up_does_not_spoil_it_for_the_others(folder: Path) -> None:
    cache, source = ArtifactCache(folder), Source()
    first = asyncio.ensure_future(cache.fetch(digest_of(DATA), source))
    others = [asyncio.ensure_future(cache.fetch(digest_of(DATA), source)) for _ in range(3)]
    while not source.calls:
        await asyncio.sleep(0)
    first.cancel()
    assert set(await asyncio.gather(*others)) == {DATA}
    assert first.cancelled()


async def test_a_failed_download_goes_on_where_it_stopped_even_in_another_process(folder: Path) -> None:
    source = Source(fails=1)
    with pytest.raises(Unavailable):
        await ArtifactCache(folder).fetch(digest_of(DATA), source)
    assert list(stored(folder)) == []
    assert await ArtifactCache(folder).fetch(digest_of(DATA), source) == DATA
    assert source.starts[1] >= len(DATA) // 2


async def test_bytes_with_another_digest_are_never_given_out(folder: Path) -> None:
    cache = ArtifactCache(folder)
    with pytest.raises(DigestMismatch):
        await cache.fetch(digest_of(DATA), Source(DATA[:-1] + b"!"))
    assert list(stored(folder)) == []
    assert await cache.fetch(digest_of(DATA), Source()) == DATA


async def test_a_bad_beginning_left_by_somebody_does_not_last(folder: Path) -> None:
    cache = ArtifactCache(folder)
    (folder / "partial" / digest_of(DATA).replace(":", "-")).write_bytes(b"evil" * 10)
    source = Source()
    assert await cache.fetch(digest_of(DATA), source) == DATA
    assert source.starts == [40, 0]


async def test_a_blob_that_changed_on_disk_is_fetched_again(folder: Path) -> None:
    cache, source = ArtifactCache(folder), Source()
    await cache.fetch(digest_of(DATA), source)
    (blob,) = stored(folder)
    blob.write_bytes(DATA[:-1])
    assert await cache.fetch(digest_of(DATA), source) == DATA
    assert source.calls == 2


async def test_what_was_used_longest_ago_goes_first_and_what_is_old_goes_anyway(folder: Path) -> None:
    clock = FakeClock()
    cache = ArtifactCache(folder, limits=CacheLimits(bytes=2500, age=1000.0), clock=clock)
    blobs = [bytes([number]) * 1000 for number in range(4)]
    for number, blob in enumerate(blobs):
        cache.put(digest_of(blob), blob)
        (path,) = (path for path in stored(folder) if path.name == digest_of(blob)[7:])
        os.utime(path, (clock.now() - 500 + number, clock.now() - 500 + number))
    collected = cache.collect()
    assert (collected.blobs, collected.freed, collected.kept) == (2, 2000, 2000)
    assert [cache.read(digest_of(blob)) is not None for blob in blobs] == [False, False, True, True]
    clock.skip(498.5)
    assert cache.collect().blobs == 0
    clock.skip(4.0)
    assert cache.collect().blobs == 1


async def test_reading_counts_as_use(folder: Path) -> None:
    clock = FakeClock()
    cache = ArtifactCache(folder, limits=CacheLimits(age=10_000.0), clock=clock)
    cache.put(digest_of(DATA), DATA)
    (path,) = stored(folder)
    os.utime(path, (clock.now(), clock.now()))
    clock.skip(9_000)
    assert cache.read(digest_of(DATA)) == DATA
    clock.skip(9_000)
    assert cache.collect().blobs == 0


def test_partial_files_are_collected_unless_somebody_writes_them_or_may_go_on(folder: Path) -> None:
    clock = FakeClock()
    cache = ArtifactCache(folder, clock=clock)
    other = digest_of(b"other")
    with cache.partial(digest_of(DATA)) as first, cache.partial(digest_of(DATA)) as second:
        first.write(b"x")
        second.write(b"x")
        (folder / "partial" / f"{other.replace(':', '-')}.dead").write_bytes(b"x")
        left = folder / "partial" / other.replace(":", "-")
        left.write_bytes(b"x")
        for path in (folder / "partial").iterdir():
            os.utime(path, (clock.now(), clock.now()))
        assert cache.collect().partials == 1, "only the second file of a dead process"
        clock.skip(90_000)
        assert cache.collect().partials == 1, "and what nobody went on with"
        assert not left.exists()
        assert len(list((folder / "partial").iterdir())) == 2


def test_what_is_left_of_a_fetch_goes_once_another_process_stored_the_same(folder: Path) -> None:
    cache = ArtifactCache(folder)
    digest = digest_of(DATA)
    with cache.partial(digest) as killed:
        killed.write(DATA[:1])
        cache.put(digest, DATA)
        assert cache.collect().partials == 0, "a process writes it"
    assert len(list((folder / "partial").iterdir())) == 1
    assert cache.collect().partials == 1
    assert list((folder / "partial").iterdir()) == []
    assert cache.read(digest) == DATA


def test_a_full_disk_is_reported_and_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ArtifactCache(folder)

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(CacheFailed, match="free some space"):
        cache.put(digest_of(DATA), DATA)
    assert list((folder / "partial").iterdir()) == []


BLOBS = [random.Random(number).randbytes(60_000 + number) for number in range(40)]


def _fill(folder: str, order: int, ready: Connection) -> None:
    """Fetch all blobs over and over, slowly enough to be killed anywhere."""
    cache = ArtifactCache(Path(folder))
    blobs = BLOBS[:]
    random.Random(order).shuffle(blobs)

    async def fill() -> None:
        for number, blob in enumerate(blobs):
            await cache.fetch(digest_of(blob), Source(blob))
            if number == 3:
                ready.send(True)

    asyncio.run(fill())


async def test_after_kill_9_at_any_moment_every_blob_is_whole(folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    chance = random.Random(7)
    for round_number in range(3):
        children = []
        for number in range(2):
            ours, theirs = context.Pipe()
            child = context.Process(target=_fill, args=(str(folder), round_number * 2 + number, theirs))
            child.start()
            children.append((child, ours))
        for child, ours in children:
            ours.recv()
            for _ in range(chance.randrange(2000)):
                await asyncio.sleep(0)
            os.kill(child.pid or 0, signal.SIGKILL)
            child.join()
        cache = ArtifactCache(folder)
        for path in stored(folder):
            assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
    for blob in BLOBS:
        assert await cache.fetch(digest_of(blob), Source(blob)) == blob
    cache.collect()
    assert list((folder / "partial").iterdir()) == []


async def test_processes_that_fetch_the_same_do_not_disturb_one_another(folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    children = []
    for number in range(3):
        ours, theirs = context.Pipe()
        child = context.Process(target=_fill, args=(str(folder), number, theirs))
        child.start()
        children.append((child, ours))
    for child, _ in children:
        await asyncio.to_thread(child.join)
        assert child.exitcode == 0
    cache = ArtifactCache(folder)
    assert all(cache.read(digest_of(blob)) == blob for blob in BLOBS)
    assert list((folder / "partial").iterdir()) == []
