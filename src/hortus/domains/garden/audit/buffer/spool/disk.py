"""The operations on files that the spool needs, at one place so that tests can let each of them fail.

All of them block. A write is complete or raises; a file that is replaced is always whole.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_MOST_PARTS = 512
"""Buffers of one write; POSIX guarantees 16, Linux and macOS take 1024."""


class FolderSpace(NamedTuple):
    """Bytes of the file system that holds a folder."""

    total: int
    free: int


class SpoolDisk:
    """The real disk."""

    def create(self, path: Path, size: int) -> int:
        """Opens a new file with `size` bytes reserved. Raises OSError, and leaves no file then."""
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            self.reserve(file, size)
        except OSError:
            os.close(file)
            path.unlink()
            raise
        return file

    def reserve(self, file: int, size: int) -> None:
        """Reserves the first `size` bytes, so that later writes to them do not meet a full disk."""
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)

    def open(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def write(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        """Writes all `parts` at `offset`."""
        for start in range(0, len(parts), _MOST_PARTS):
            some = parts[start : start + _MOST_PARTS]
            wanted = sum(map(len, some))
            done = os.pwritev(file, some, offset)
            if done < wanted:
                rest = memoryview(b"".join(some))
                while done < wanted:
                    done += os.pwrite(file, rest[done:], offset + done)
            offset += wanted

    def sync(self, file: int) -> None:
        """Returns when the content is on the disk."""
        getattr(os, "fdatasync", os.fsync)(file)

    def truncate(self, file: int, size: int) -> None:
        os.ftruncate(file, size)

    def close(self, file: int) -> None:
        os.close(file)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def replace(self, path: Path, content: bytes, *, durable: bool) -> None:
        """Replaces a small file; `durable` returns when it is on the disk."""
        new = path.with_name(f".{path.name}.new")
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            self.write(file, (content,), 0)
            if durable:
                os.fsync(file)
        finally:
            os.close(file)
        new.replace(path)
        if durable:
            self.sync_folder(path.parent)

    def sync_folder(self, folder: Path) -> None:
        """Returns when the names in `folder` are on the disk."""
        file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def space(self, folder: Path) -> FolderSpace:
        found = os.statvfs(folder)
        return FolderSpace(found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail)
