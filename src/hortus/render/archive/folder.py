"""A folder on disk, read as untrustingly as an archive: no links, no devices, nothing outside.

Every part of a path is opened relative to the folder before it and without following links, so a link that appears
between a check and a read is refused too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hortus.render.archive.entries import check_mode
from hortus.render.archive.errors import ArchiveError, Rule
from hortus.render.archive.limits import Limits, RemainingLimits
from hortus.render.archive.names import Names, clean
from hortus.render.archive.tree import File, Tree

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class Folder:
    """Reads files below `root` one by one; `tree()` reads them all. The root itself may be a link."""

    def __init__(self, root: Path, *, limits: Limits | None = None) -> None:
        self.root = root
        self._limits = limits or Limits()

    def read(self, path: str) -> bytes:
        """The bytes of one file. Raises ArchiveError (links and the like), FileNotFoundError, IsADirectoryError."""
        with self._opened(path) as descriptor:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(path)
            return _contents(descriptor, status, path, RemainingLimits(self._limits))

    def is_file(self, path: str) -> bool:
        """Raises ArchiveError where the path is, or leads through, a link."""
        return self._kind(path) == stat.S_IFREG

    def is_folder(self, path: str) -> bool:
        """Raises ArchiveError where the path is, or leads through, a link."""
        return self._kind(path) == stat.S_IFDIR

    def tree(self) -> Tree:
        """Everything in the folder. Raises ArchiveError, OSError."""
        budget, names = RemainingLimits(self._limits), Names(self._limits)
        files: dict[str, File] = {}
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _collect(descriptor, "", files, names, budget)
        finally:
            os.close(descriptor)
        return Tree.of_clean(files, names.folders)

    def _kind(self, path: str) -> int:
        try:
            with self._opened(path) as descriptor:
                return stat.S_IFMT(os.fstat(descriptor).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return 0

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        parts = clean(path, self._limits).split("/")
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts if parts != [""] else []:
                below = _open_below(descriptor, part, path)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)


def _open_below(descriptor: int, name: str, path: str) -> int:
    try:
        return os.open(name, _READ, dir_fd=descriptor)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ArchiveError(Rule.LINK, "is a symbolic link; links are not followed", entry=path) from None
        if error.errno in (errno.ENXIO, errno.ENODEV):
            raise ArchiveError(Rule.DEVICE, "is a device or socket", entry=path) from None
        raise


def _contents(descriptor: int, status: os.stat_result, path: str, budget: RemainingLimits) -> bytes:
    check_mode(stat.S_IFMT(status.st_mode), path)
    budget.file(path, status.st_size)
    with open(descriptor, "rb", closefd=False) as file:
        data = file.read(budget.limits.file + 1)
    budget.file(path, len(data))
    budget.unpacked(len(data))
    return data


def _collect(descriptor: int, folder: str, files: dict[str, File], names: Names, budget: RemainingLimits) -> None:
    with os.scandir(descriptor) as found:
        entries = sorted(entry.name for entry in found)
    for name in entries:
        path = f"{folder}/{name}" if folder else name
        budget.entry()
        below = _open_below(descriptor, name, path)
        try:
            status = os.fstat(below)
            if stat.S_ISDIR(status.st_mode):
                names.folder(path)
                _collect(below, path, files, names, budget)
            else:
                files[names.file(path)] = File(_contents(below, status, path, budget), bool(status.st_mode & 0o100))
        finally:
            os.close(below)
