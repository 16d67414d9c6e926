"""The common form of both formats: a sequence of files and folders with clean names."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from typing import NamedTuple

from hortus.render.archive.errors import ArchiveError, Rule


class ArchiveEntry(NamedTuple):
    """One file, whose `pieces` are to be read before the next entry is asked for, or one folder (`pieces` None)."""

    path: str
    executable: bool
    pieces: Iterator[bytes] | None


_MODES = {
    stat.S_IFLNK: (Rule.LINK, "is a symbolic link"),
    stat.S_IFCHR: (Rule.DEVICE, "is a character device"),
    stat.S_IFBLK: (Rule.DEVICE, "is a block device"),
    stat.S_IFIFO: (Rule.FIFO, "is a named pipe"),
    stat.S_IFSOCK: (Rule.DEVICE, "is a socket"),
}


def check_mode(mode: int, name: str) -> None:
    """Refuse what a Unix mode says to be neither file nor folder, and set-user-id and set-group-id bits."""
    kind = stat.S_IFMT(mode)
    if kind in _MODES:
        rule, problem = _MODES[kind]
        raise ArchiveError(rule, f"{problem}; only files and folders are unpacked", entry=name)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise ArchiveError(Rule.TYPE, "is neither a file nor a folder", entry=name)
    if mode & (stat.S_ISUID | stat.S_ISGID):
        raise ArchiveError(Rule.SETUID, "carries a set-user-id or set-group-id bit; pack it without", entry=name)
