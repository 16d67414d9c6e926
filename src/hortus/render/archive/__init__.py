"""Untrusted archives: tar, tgz and zip are read into a bounded tree or a private folder.

    tree = read_archive(data)                 # or read_archive_file(path); raises ArchiveError
    tree["chart/Chart.yaml"].data
    unpack_archive(data, Path("work/chart"))  # whole or not at all, 0700 and 0600
    tgz = pack_tgz(tree)                      # the same tree gives the same bytes

Only regular files and folders come out, under relative names with one meaning on every file system. What is refused
and why stands in `Rule`; how much is too much, in `Limits`. Both formats are parsed here rather than by the standard
library, whose readers take memory as the archive bids: a PAX record or a zip directory of any size, before a caller
can look at it. `RemainingLimits` is shared by archives within archives, which are never opened by themselves.
"""

from hortus.render.archive.errors import ArchiveError, Rule
from hortus.render.archive.folder import Folder
from hortus.render.archive.limits import Limits, RemainingLimits
from hortus.render.archive.packing import pack_tar, pack_tgz, pack_zip
from hortus.render.archive.reading import (
    NamedFile,
    Trailing,
    archive_files,
    read_archive,
    read_archive_file,
    unpack_archive,
)
from hortus.render.archive.tree import File, Tree

__all__ = [
    "ArchiveError",
    "File",
    "Folder",
    "Limits",
    "NamedFile",
    "RemainingLimits",
    "Rule",
    "Trailing",
    "Tree",
    "archive_files",
    "pack_tar",
    "pack_tgz",
    "pack_zip",
    "read_archive",
    "read_archive_file",
    "unpack_archive",
]
