"""A cache of artifacts on disk, addressed by digest, that many processes share and that no kill can corrupt.

    <folder>/blobs/sha256/ab/ab12...    whole and verified
    <folder>/partial/...                being downloaded, each locked by who writes it

A download goes to a partial file, is verified, synced and renamed. What a killed process leaves behind is a partial
file without a lock, which the next one goes on with or collection removes. Locks are the kernel's (flock), so they end
with their process. A blob is verified again whenever it is read: bit rot and meddling are a miss, not an answer. Its
modification time is the time of its last use, to the hour.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from hortus.kube.clock import Clock, SystemClock
from hortus.render.artifacts.digests import Digest, hasher, is_sum, matches
from hortus.render.artifacts.download import Sink, mismatch
from hortus.render.artifacts.errors import ArtifactError, CacheFailed, DigestMismatch

Fill = Callable[[Sink], Awaitable[None]]

_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1 << 20
_USE_RESOLUTION = 3600.0
"""Seconds between two notes that a blob was used."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class CacheLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits that collection keeps: bytes in all, and seconds since the last use."""

    bytes: int = 2 << 30
    age: float = 30 * 24 * 3600.0
    partial_age: float = 24 * 3600.0
    """For downloads that nobody goes on with."""


class Collected(NamedTuple):
    """The bytes that one collection removed, and that it left."""

    blobs: int
    partials: int
    freed: int
    kept: int


class ArtifactCache:
    """One folder, 0700, made when missing. Raises CacheFailed when others may enter it."""

    def __init__(self, folder: Path, *, limits: CacheLimits | None = None, clock: Clock | None = None) -> None:
        self.folder = folder
        self.limits = limits or CacheLimits()
        self._clock: Clock = clock or SystemClock()
        self._blobs = folder / "blobs"
        self._partials = folder / "partial"
        self._running: dict[Digest, asyncio.Future[None]] = {}
        self._since_collection = 0
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_private(folder)
            self._partials.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise _failed(folder, error) from None

    async def fetch(self, digest: Digest, fill: Fill) -> bytes:
        """The bytes with `digest`: from disk, or by `fill`, which writes them all to the sink it is given.

        Callers that want the same digest at once share one download. Raises ArtifactError: those of `fill`,
        DigestMismatch, CacheFailed.
        """
        while (data := await asyncio.to_thread(self.read, digest)) is None:
            running = self._running.get(digest)
            if running is None:
                await self._lead(digest, fill)
            else:
                # This caller looks again once the other's download has ended or failed, and leads if it must.
                await asyncio.wait([running])
        return data

    def read(self, digest: Digest) -> bytes | None:
        """The verified bytes, or None. A blob that does not match any more is removed."""
        path = self._place(digest)
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                data = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(self.folder, error) from None
        if not matches(digest, data):
            path.unlink(missing_ok=True)
            return None
        self._note_use(path, status)
        return data

    def put(self, digest: Digest, data: bytes) -> None:
        """Keep `data`. Raises DigestMismatch, CacheFailed."""
        with self.partial(digest) as sink:
            sink.restart()
            sink.write(data)
            sink.commit()

    @contextlib.contextmanager
    def partial(self, digest: Digest) -> Iterator[Partial]:
        """The file that `digest` is downloaded to: `load()` what an earlier process left in it, or `restart()`."""
        try:
            descriptor, path = self._claim(digest)
        except OSError as error:
            raise _failed(self.folder, error) from None
        sink = Partial(descriptor, path, self._place(digest), digest)
        try:
            yield sink
        finally:
            sink.close()

    def collect(self) -> Collected:
        """Remove files that are too old, then the least recently used until the rest fits. Safe during fetches."""
        now = self._clock.now()
        found = sorted(self._stored(), key=lambda one: one[1].st_mtime)
        total, removed = sum(status.st_size for _, status in found), 0
        kept = total
        for path, status in found:
            if kept <= self.limits.bytes and now - status.st_mtime <= self.limits.age:
                break
            path.unlink(missing_ok=True)
            kept -= status.st_size
            removed += 1
        self._since_collection = 0
        return Collected(removed, self._collect_partials(now), total - kept, kept)

    async def _lead(self, digest: Digest, fill: Fill) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running[digest] = done
        try:
            with self.partial(digest) as sink:
                if not self._place(digest).exists():
                    await self._filled(sink, fill)
        finally:
            del self._running[digest]
            done.set_result(None)
        if self._since_collection > self.limits.bytes // 8:
            await asyncio.to_thread(self.collect)

    async def _filled(self, sink: Partial, fill: Fill) -> None:
        await _finished(sink.load)
        resumed = sink.size > 0
        await fill(sink)
        try:
            await _finished(sink.commit)
        except DigestMismatch:
            if not resumed:
                raise
            # The beginning that an earlier process left may be to blame, and it is gone now.
            await fill(sink)
            await _finished(sink.commit)
        self._since_collection += sink.size

    def _place(self, digest: Digest) -> Path:
        algorithm, _, total = digest.partition(":")
        return self._blobs / algorithm / total[:2] / total

    def _claim(self, digest: Digest) -> tuple[int, Path]:
        """A locked partial file: the digest's own, or another when a process is at that one."""
        path = self._partials / digest.replace(":", "-")
        descriptor = _locked(path)
        while descriptor is None:
            path = path.with_name(f"{digest.replace(':', '-')}.{secrets.token_hex(8)}")
            descriptor = _locked(path)
        return descriptor, path

    def _note_use(self, path: Path, status: os.stat_result) -> None:
        now = self._clock.now()
        if abs(now - status.st_mtime) > _USE_RESOLUTION:
            # It may have been collected meanwhile; the bytes are in hand all the same.
            with contextlib.suppress(OSError):
                os.utime(path, (now, now))

    def _stored(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self._blobs.glob("*/*/*"):
            with contextlib.suppress(FileNotFoundError):
                yield path, path.lstat()

    def _collect_partials(self, now: float) -> int:
        removed = 0
        for path in self._partials.iterdir():
            with contextlib.suppress(FileNotFoundError):
                descriptor = None if self._may_go_on(path, now) else _locked(path)
                if descriptor is not None:
                    path.unlink(missing_ok=True)
                    os.close(descriptor)
                    removed += 1
        return removed

    def _may_go_on(self, path: Path, now: float) -> bool:
        """Reports if a later fetch can begin with the bytes of a partial file."""
        if path.suffix or now - path.lstat().st_mtime > self.limits.partial_age:
            return False
        # While the process that was killed held this file, another process may have fetched the same digest.
        return not self._place(Digest(path.name.replace("-", ":", 1))).exists()


class Partial:
    """A locked file that takes the bytes of one digest; `commit()` verifies them and gives them their name."""

    def __init__(self, descriptor: int, path: Path, target: Path, digest: Digest) -> None:
        self._descriptor = descriptor
        self._path = path
        self._target = target
        self._digest = digest
        self._committed = False
        self._sum = hasher(digest)
        self.size = 0

    def load(self) -> None:
        """Take in what the file holds already."""
        while piece := os.read(self._descriptor, _PIECE):
            self._sum.update(piece)
            self.size += len(piece)

    def write(self, piece: bytes) -> None:
        try:
            view = memoryview(piece)
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            self.restart()
            raise _failed(self._path.parent, error) from None
        self._sum.update(piece)
        self.size += len(piece)

    def restart(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._sum = hasher(self._digest)
        self.size = 0

    def commit(self) -> None:
        """Raises DigestMismatch, after which nothing of the bytes is left, and CacheFailed."""
        if not is_sum(self._digest, self._sum):
            self.restart()
            raise mismatch("the cache", self._digest)
        try:
            os.fsync(self._descriptor)
            for folder in reversed(self._target.parents[:3]):
                folder.mkdir(mode=0o700, exist_ok=True)
            self._path.rename(self._target)
            _sync_folder(self._target.parent)
        except OSError as error:
            raise _failed(self._path.parent, error) from None
        self._committed = True

    def close(self) -> None:
        """Give up the lock. What is not whole stays for another try, except for nothing and for second files."""
        if not self._committed and (not self.size or self._path.suffix):
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


async def _finished(work: Callable[[], None]) -> None:
    """Do `work` in a thread. A cancellation waits for it, since it uses a file that the caller closes then."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()
        raise


def _locked(path: Path) -> int | None:
    """The file at `path`, locked, or None when another process has it.

    Between opening and locking, its owner may have renamed or removed it: then the lock is on something else.
    """
    while True:
        descriptor = os.open(path, _OPEN, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        mine = os.fstat(descriptor)
        with contextlib.suppress(FileNotFoundError):
            there = path.lstat()
            if (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino):
                return descriptor
        os.close(descriptor)


def _check_private(folder: Path) -> None:
    status = folder.stat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        advice = f"make it a folder of this user alone: chmod 700 {folder}"
        raise CacheFailed(str(folder), "others may write or read what is cached there", advice)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _failed(folder: Path, error: OSError) -> ArtifactError:
    advice = "free some space or give the cache a smaller limit" if error.errno in _FULL else ""
    return CacheFailed(str(folder), f"the cache cannot be used: {error.strerror or type(error).__name__}", advice)
