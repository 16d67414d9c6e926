"""Reading files for kustomizations: below one root, each kustomization only in or below its own folder.

A base may lie anywhere below the root except around the one that uses it; files (patches, resources, sources of
generators) only in or below the folder of their kustomization. Both rules are kustomize's own.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Protocol

from hortus.render.archive import ArchiveError
from hortus.render.kustomize.documents import FILE_NAMES
from hortus.render.kustomize.errors import KustomizeError, RemoteBase

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|git@|[^/]+@[^/]+:|(?:[a-z0-9-]+\.)+[a-z]{2,}/|[^?]*\?")
"""The texts that kustomize takes for the address of a repository or file: a scheme, an ssh form, a host, or a query."""


class FileSource(Protocol):
    """The source of files: `hortus.render.archive`'s Tree and Folder are such."""

    def read(self, path: str) -> bytes:
        """Raises FileNotFoundError, IsADirectoryError, ArchiveError."""

    def is_file(self, path: str) -> bool: ...

    def is_folder(self, path: str) -> bool: ...


class Loader:
    """Reads for the kustomization in `folder`; `base` and `component` lead to others."""

    def __init__(
        self,
        source: FileSource,
        folder: str,
        *,
        remotes: Mapping[str, FileSource],
        budget: list[int],
        around: tuple[tuple[int, str], ...] = (),
    ) -> None:
        self.source = source
        self.folder = folder
        self._remotes = remotes
        self._budget = budget
        self._around = (*around, (id(source), folder))

    @property
    def place(self) -> str:
        return self.folder or "."

    @property
    def depth(self) -> int:
        return len(self._around)

    def kustomization(self) -> tuple[bytes, str]:
        """The contents and the path of the kustomization file. Raises KustomizeError."""
        found = [path for path in (posixpath.join(self.folder, name) for name in FILE_NAMES) if self._is_file(path)]
        if len(found) != 1:
            problem = "holds several of" if found else "holds none of"
            raise KustomizeError(self.place, f"{problem} {', '.join(FILE_NAMES)}")
        return self._read(found[0]), found[0]

    def read(self, path: str) -> bytes:
        """A file in or below this folder. Raises KustomizeError."""
        return self._read(self._below(path))

    def is_folder(self, path: str) -> bool:
        """True when `path` names a folder, below this one or next to it."""
        target = self._resolved(path)
        try:
            return target is not None and self.source.is_folder(target)
        except ArchiveError as error:
            raise KustomizeError(self.place, str(error)) from None

    def is_file(self, path: str) -> bool:
        """True when `path` names a file below the root."""
        target = self._resolved(path)
        return target is not None and self._is_file(target)

    def base(self, path: str) -> Loader:
        """A loader for the kustomization in another folder. Raises KustomizeError, RemoteBase."""
        if path in self._remotes:
            source, target = self._remotes[path], ""
        else:
            source, target = self.source, self._folder(path)
        for other, folder in self._around:
            if other == id(source) and (folder == target or not target or folder.startswith(target + "/")):
                raise KustomizeError(self.place, f"{path[:200]!r} leads in a circle: it holds {folder or '.'!r}")
        return Loader(source, target, remotes=self._remotes, budget=self._budget, around=self._around)

    def is_remote(self, path: str) -> bool:
        """True when `path` is an address rather than a path."""
        return path in self._remotes or bool(_REMOTE.match(path))

    def remote_file(self, path: str) -> RemoteBase:
        return RemoteBase(self.place, path)

    def _folder(self, path: str) -> str:
        target = self._resolved(path)
        if target is not None and self.is_folder(path):
            return target
        if self.is_remote(path):
            raise RemoteBase(self.place, path)
        if target is None:
            raise KustomizeError(self.place, f"{path[:200]!r} lies outside of the root")
        raise KustomizeError(self.place, f"{path[:200]!r} is neither a file nor a folder")

    def _resolved(self, path: str) -> str | None:
        """The path from the root, or None when it leaves it."""
        if path.startswith("/") or "\0" in path:
            return None
        target = posixpath.normpath(posixpath.join(self.folder, path))
        if target == ".." or target.startswith("../"):
            return None
        return "" if target == "." else target

    def _below(self, path: str) -> str:
        target = self._resolved(path)
        if target is None or not (not self.folder or target.startswith(self.folder + "/")):
            raise KustomizeError(self.place, f"the file {path[:200]!r} does not lie in or below this folder")
        return target

    def _is_file(self, path: str) -> bool:
        try:
            return self.source.is_file(path)
        except ArchiveError as error:
            raise KustomizeError(self.place, str(error)) from None

    def _read(self, path: str) -> bytes:
        try:
            data = self.source.read(path)
        except FileNotFoundError:
            raise KustomizeError(self.place, f"there is no file {path[:200]!r}") from None
        except (IsADirectoryError, NotADirectoryError):
            raise KustomizeError(self.place, f"{path[:200]!r} is a folder; a file is expected") from None
        except ArchiveError as error:
            raise KustomizeError(self.place, str(error)) from None
        self._budget[0] -= len(data)
        if self._budget[0] < 0:
            raise KustomizeError(self.place, f"{path[:200]!r}: more bytes are read than allowed")
        return data
