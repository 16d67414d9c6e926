"""Reads an archive into a tree, or into files in a folder that nobody else can see.

Which format it is, its first bytes say; a name or media type is not asked. Reading is CPU-bound work of up to a second
at the limits: call it in a worker thread or process, not on an event loop.
"""

from __future__ import annotations

import enum
import io
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from hortus.render.archive.entries import ArchiveEntry
from hortus.render.archive.errors import ArchiveError, Rule
from hortus.render.archive.limits import Limits, RemainingLimits
from hortus.render.archive.names import Names
from hortus.render.archive.streams import Gunzip, Plain, Stream
from hortus.render.archive.tar import BLOCK, is_header, tar_entries
from hortus.render.archive.tree import File, Tree
from hortus.render.archive.zip import zip_entries

_OTHERS = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7z", b"Rar!": "rar"}
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


class NamedFile(NamedTuple):
    """One file of an archive."""

    path: str
    data: bytes


class Trailing(enum.Enum):
    """The treatment of data after the end of an archive."""

    REFUSE = "refuse"
    IGNORE = "ignore"


def read_archive(
    data: bytes,
    *,
    limits: Limits | None = None,
    budget: RemainingLimits | None = None,
    trailing: Trailing = Trailing.REFUSE,
    name: str = "",
) -> Tree:
    """The tree in a tar, tgz or zip. Raises ArchiveError.

    Give the same `budget` for archives found inside of others, so that they share one set of limits; `name` is the
    archive's own, for messages.
    """
    return _read(io.BytesIO(data), len(data), budget or RemainingLimits(limits), trailing, name)


def archive_files(
    data: bytes, *, limits: Limits | None = None, trailing: Trailing = Trailing.REFUSE
) -> list[NamedFile]:
    """The files in a tar, tgz or zip in the archive's own order; all of it is checked first. Raises ArchiveError."""
    limits = limits or Limits()
    entries = _entries(io.BytesIO(data), len(data), RemainingLimits(limits), Names(limits), trailing)
    return [NamedFile(entry.path, b"".join(entry.pieces)) for entry in entries if entry.pieces is not None]


def read_archive_file(
    path: Path,
    *,
    limits: Limits | None = None,
    budget: RemainingLimits | None = None,
    trailing: Trailing = Trailing.REFUSE,
) -> Tree:
    """The tree in an archive on disk, never a link. Raises ArchiveError, OSError."""
    with _open(path) as file:
        return _read(file, os.fstat(file.fileno()).st_size, budget or RemainingLimits(limits), trailing, path.name)


def unpack_archive(
    source: bytes | Path, folder: Path, *, limits: Limits | None = None, trailing: Trailing = Trailing.REFUSE
) -> None:
    """Write the tree into `folder`, which must not exist yet: whole or not at all, readable by the owner alone.

    Files are 0600 (0700 when executable), folders 0700. Raises ArchiveError, OSError (FileExistsError).
    """
    if folder.exists():
        raise FileExistsError(f"{folder} exists already")
    staging = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}")
    staging.mkdir(mode=0o700)
    try:
        file = io.BytesIO(source) if isinstance(source, bytes) else _open(source)
        with file:
            size = len(source) if isinstance(source, bytes) else os.fstat(file.fileno()).st_size
            _write(_entries(file, size, RemainingLimits(limits), Names(limits or Limits()), trailing), staging)
        staging.rename(folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _open(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ArchiveError(Rule.TYPE, "is not a regular file", entry=path.name)
    return os.fdopen(descriptor, "rb")


def _read(file: BinaryIO, size: int, budget: RemainingLimits, trailing: Trailing, name: str) -> Tree:
    files: dict[str, File] = {}
    names = Names(budget.limits)
    with budget.archive(name):
        for entry in _entries(file, size, budget, names, trailing):
            if entry.pieces is not None:
                files[entry.path] = File(b"".join(entry.pieces), entry.executable)
    return Tree.of_clean(files, names.folders)


def _entries(
    file: BinaryIO, size: int, budget: RemainingLimits, names: Names, trailing: Trailing
) -> Iterator[ArchiveEntry]:
    budget.compressed(size)
    ignore = trailing is Trailing.IGNORE
    head = file.read(BLOCK)
    file.seek(0)
    if head.startswith((b"PK\3\4", b"PK\5\6")):
        return zip_entries(file.read(), budget, names, ignore_trailing=ignore)
    stream: Stream
    if head.startswith(b"\x1f\x8b"):
        stream = Gunzip(file, budget, ignore_trailing=ignore)
    elif is_header(head) or (head and not head.strip(b"\0")):
        stream = Plain(file, budget)
    else:
        raise _unknown(head)
    return tar_entries(stream, budget, names, ignore_trailing=ignore)


def _unknown(head: bytes) -> ArchiveError:
    for start, name in _OTHERS.items():
        if head.startswith(start):
            return ArchiveError(Rule.FORMAT, f"is packed with {name}; pack it as tar, tar.gz or zip")
    return ArchiveError(Rule.FORMAT, "is not an archive: neither tar, nor tar.gz, nor zip")


def _write(entries: Iterator[ArchiveEntry], folder: Path) -> None:
    for entry in entries:
        target = folder / entry.path
        if entry.pieces is None:
            _make(target, folder)
            continue
        _make(target.parent, folder)
        with os.fdopen(os.open(target, _NEW_FILE, 0o700 if entry.executable else 0o600), "wb") as file:
            file.writelines(entry.pieces)


def _make(target: Path, root: Path) -> None:
    if target != root and not target.is_dir():
        _make(target.parent, root)
        target.mkdir(mode=0o700)
