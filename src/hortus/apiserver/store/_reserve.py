"""A reserve of disk space, so that objects can still be deleted when the disk is full.

A deletion is a write too: it needs space in the log, and its space is freed only when the log has been emptied into the
database, which needs space again. So there is a file of zeros next to the database. When a write finds the disk full,
the file is truncated, and only deletions are written until the whole file can be allocated again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from pathlib import Path

RESERVE_BYTES = 32 * 1024 * 1024
"""Bytes that emptying the log can need: 2,000 pages of 4 KiB and the batch beyond them, and as much again that was
written after the first attempt failed; the deletions themselves take some kilobytes each."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_LITTLE = 1024 * 1024
"""Free bytes below which any failed write counts as a full disk, because fsync reports that as an I/O error."""


class Reserve:
    """The file `path` of `size` bytes. All of this blocks."""

    def __init__(self, path: Path, size: int = RESERVE_BYTES) -> None:
        self.path = path
        self._size = size
        self.held = False

    def take(self) -> None:
        """Allocates the whole file. Raises OSError where the disk lacks the space, without taking any."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _allocate(descriptor, self._size)
        except OSError:
            os.ftruncate(descriptor, 0)
            raise
        finally:
            os.close(descriptor)
        self.held = True

    def release(self) -> None:
        """Frees its space. Never raises: the next write fails if the space was not freed."""
        self.held = False
        with contextlib.suppress(OSError):
            os.truncate(self.path, 0)

    def is_full(self, error: Exception) -> bool:
        """True when a failed write means that there is no space left."""
        if isinstance(error, sqlite3.Error):
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                return True
        elif isinstance(error, OSError) and error.errno in _FULL:
            return True
        try:
            disk = os.statvfs(self.path.parent)
        except OSError:
            return False
        return disk.f_bavail * disk.f_frsize < _LITTLE


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, size)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
    zeros = bytes(1024 * 1024)
    for start in range(os.fstat(descriptor).st_size, size, len(zeros)):
        os.pwrite(descriptor, zeros[: size - start], start)
