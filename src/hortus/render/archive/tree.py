"""A tree of files held in memory: what an archive or a folder comes down to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hortus.render.archive.errors import ArchiveError, Rule
from hortus.render.archive.limits import Limits
from hortus.render.archive.names import Names


class File(NamedTuple):
    data: bytes
    executable: bool = False


class Tree(Mapping[str, File]):
    """Files by their path, sorted; a value. Paths are relative, with `/`, and clean as `Rule` demands."""

    __slots__ = ("_files", "folders")

    def __init__(self, files: Mapping[str, File | bytes], folders: frozenset[str] = frozenset()) -> None:
        """A tree of files by path; `folders` adds empty ones. Raises ArchiveError for a name that is refused."""
        names = Names(Limits())
        found = {names.file(path): file if isinstance(file, File) else File(file) for path, file in files.items()}
        for folder in folders:
            names.folder(folder)
        self._files = dict(sorted(found.items()))
        self.folders = names.folders
        """All folders, without the root."""

    @classmethod
    def of_clean(cls, files: Mapping[str, File], folders: frozenset[str]) -> Tree:
        """A tree of paths that were checked already, with all their folders."""
        made = cls.__new__(cls)
        made._files = dict(sorted(files.items()))
        made.folders = folders
        return made

    def __getitem__(self, path: str) -> File:
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, path: object) -> bool:
        return path in self._files

    def __repr__(self) -> str:
        return f"Tree({len(self._files)} files)"

    def read(self, path: str) -> bytes:
        """The bytes of one file. Raises FileNotFoundError, IsADirectoryError."""
        file = self._files.get(path)
        if file is not None:
            return file.data
        raise IsADirectoryError(path) if self.is_folder(path) else FileNotFoundError(path)

    def is_file(self, path: str) -> bool:
        return path in self._files

    def is_folder(self, path: str) -> bool:
        return not path or path in self.folders

    def below(self, folder: str) -> Tree:
        """The part in `folder`, with paths from there."""
        start = folder + "/" if folder else ""
        cut = len(start)
        files = {path[cut:]: file for path, file in self._files.items() if path.startswith(start)}
        return Tree.of_clean(files, frozenset(path[cut:] for path in self.folders if path.startswith(start)))

    def single_folder(self) -> str:
        """The one folder that holds everything, as charts and release archives are packed. Raises ArchiveError."""
        tops = {path.partition("/")[0] for path in (*self._files, *self.folders)}
        if len(tops) != 1 or not self.is_folder(top := next(iter(tops))):
            raise ArchiveError(Rule.NAME, f"{len(tops)} files and folders stand at the top; one folder is expected")
        return top

    def digest(self) -> str:
        """`sha256:...` over names, modes and contents: equal for equal trees however they were packed."""
        total = hashlib.sha256()
        for path, file in self._files.items():
            name = path.encode()
            total.update(b"%d:%s%d:%d:" % (len(name), name, file.executable, len(file.data)))
            total.update(file.data)
        for path in sorted(self.folders):
            total.update(b"/%d:%s" % (len(path.encode()), path.encode()))
        return f"sha256:{total.hexdigest()}"
