"""Releases on disk: a cache that is filled from a source, or a folder that somebody else fills.

    <folder>/artifacts/blobs/sha256/ab/ab12...     files, by digest
    <folder>/releases/<tag>.json                   the files of one release, by name; written last
    <folder>/cluster-stacks/<tag>/                 the folders of --local

An index is renamed to its place after its files are there, so a release is there whole or not at all.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from hortus.domains.stacks.names import ReleaseName
from hortus.domains.stacks.releases.errors import ReleaseMissing, SourceFailed
from hortus.domains.stacks.releases.release import ReadFile, StackRelease, is_used, opened
from hortus.domains.stacks.releases.sources import PublishedTag
from hortus.render.artifacts import ArtifactCache, CacheFailed, Digest

LARGEST_FILE: Final = 256 << 20
"""Bytes of one file, as in the other sources."""


class _Index(msgspec.Struct):
    files: dict[str, Digest]


class ReleaseCache:
    """The releases below one folder. Its methods block."""

    def __init__(self, folder: Path) -> None:
        """Raises SourceFailed."""
        try:
            self.artifacts = ArtifactCache(folder / "artifacts")
        except CacheFailed as error:
            raise SourceFailed(f"--release-dir: {error}") from error
        self._folder = folder / "releases"
        self._folder.mkdir(mode=0o700, exist_ok=True)

    def open(self, name: ReleaseName) -> StackRelease:
        """Raises BadRelease, ReleaseMissing."""
        try:
            index = msgspec.json.decode(self._place(name).read_bytes(), type=_Index)
        except (FileNotFoundError, msgspec.MsgspecError):
            raise ReleaseMissing(f"release {name.tag}: is not downloaded yet") from None
        return opened(name, index.files, self.reader(name, index.files))

    def reader(self, name: ReleaseName, files: Mapping[str, Digest]) -> ReadFile:
        """Returns the reader of the files of one release, which forgets a release with a file that is damaged."""

        def read(file: str) -> bytes | None:
            data = self.artifacts.read(files[file])
            if data is None:
                self.forget(name)
            return data

        return read

    def save(self, name: ReleaseName, files: Mapping[str, Digest]) -> None:
        """Write the index of a release whose files are in the cache."""
        place = self._place(name)
        partial = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
        try:
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(msgspec.json.encode(_Index(dict(files))))
                file.flush()
                os.fsync(file.fileno())
            partial.rename(place)
        finally:
            partial.unlink(missing_ok=True)

    def forget(self, name: ReleaseName) -> None:
        """Remove the index of a release; its files go when they are the least recently used."""
        self._place(name).unlink(missing_ok=True)

    def _place(self, name: ReleaseName) -> Path:
        return self._folder / f"{name.tag}.json"


class ReleaseFolder:
    """Folders of releases, one a tag, that are filled by somebody else. Its methods block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "cluster-stacks"

    def tags(self) -> list[PublishedTag]:
        """The folders, with the time of their last change."""
        with contextlib.suppress(FileNotFoundError):
            return [
                PublishedTag(entry.name, entry.stat().st_mtime) for entry in self._folder.iterdir() if entry.is_dir()
            ]
        return []

    def open(self, name: ReleaseName) -> StackRelease:
        """Raises BadRelease, ReleaseMissing."""
        folder = self._folder / name.tag
        files = dict(_stamps(folder))
        if not folder.is_dir():
            raise ReleaseMissing(f"release {name.tag}: folder {folder} does not exist; create it with the files")
        return opened(name, files, lambda file: _content(folder / file))


def _stamps(folder: Path) -> Iterator[tuple[str, str]]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in folder.iterdir():
            if is_used(path.name) and path.is_file():
                found = path.stat()
                yield path.name, f"{found.st_size}-{found.st_mtime_ns}"


def _content(path: Path) -> bytes | None:
    with contextlib.suppress(FileNotFoundError):
        return path.read_bytes() if path.stat().st_size <= LARGEST_FILE else None
    return None
