"""One release: its name, its versions, and its files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from hortus.domains.stacks.names import ReleaseName
from hortus.domains.stacks.releases.errors import BadRelease, ReleaseMissing
from hortus.domains.stacks.releases.metadata import HASHES, METADATA, ReleaseVersions, check_hashes, parse_metadata

VALUES: Final = "cluster-addon-values.yaml"
ADDON_CONFIG: Final = "clusteraddon.yaml"
NODE_IMAGES: Final = "node-images.yaml"
_DOCUMENTS: Final = frozenset((METADATA, HASHES, VALUES, ADDON_CONFIG, NODE_IMAGES))
_ARCHIVE: Final = ".tgz"

ReadFile = Callable[[str], bytes | None]
"""Returns the verified content of a file of the release; None when it is gone or damaged. Blocking."""


class StackRelease:
    """A release whose files are on disk. Made by `Library`."""

    def __init__(self, name: ReleaseName, versions: ReleaseVersions, files: Mapping[str, str], read: ReadFile) -> None:
        self.name = name
        self.versions = versions
        self.files = files
        """The files by name, each with the sha256 digest of its content, or with its size and time in a folder."""
        self._read = read

    @property
    def is_multi_stage(self) -> bool:
        """True where the addons come in stages, from several charts."""
        return ADDON_CONFIG in self.files

    @property
    def revision(self) -> tuple[tuple[str, str], ...]:
        """Equal for equal files."""
        return tuple(sorted(self.files.items()))

    @property
    def class_chart_file(self) -> str:
        """The file of the ClusterClass's chart. Raises BadRelease."""
        return self._chart("cluster-class", self.name.version.dot)

    @property
    def addon_chart_file(self) -> str:
        """The file of the addons: a chart, or an archive of charts. Raises BadRelease."""
        return self._chart("cluster-addon", self.versions.addon.dot)

    async def class_chart(self) -> bytes:
        """The chart of the ClusterClass. Raises ReleaseError."""
        return await self.read(self.class_chart_file)

    async def addon_chart(self) -> bytes:
        """The chart of the addons, or with stages the archive of their charts. Raises ReleaseError."""
        return await self.read(self.addon_chart_file)

    async def values_template(self) -> bytes | None:
        """The template of the addon chart's values. Raises ReleaseError."""
        return await self._optional(VALUES)

    async def addon_config(self) -> bytes | None:
        """The stages of the addons. Raises ReleaseError."""
        return await self._optional(ADDON_CONFIG)

    async def node_images(self) -> bytes | None:
        """The node images of the provider. Raises ReleaseError."""
        return await self._optional(NODE_IMAGES)

    async def read(self, file: str) -> bytes:
        """The content of one file. Raises BadRelease, ReleaseMissing."""
        if file not in self.files:
            raise BadRelease(f"release {self.name.tag}: has no file {file}")
        data = await asyncio.to_thread(self._read, file)
        if data is None:
            raise ReleaseMissing(f"release {self.name.tag}: {file} is gone or damaged; it is downloaded again")
        return data

    async def _optional(self, file: str) -> bytes | None:
        return await self.read(file) if file in self.files else None

    def _chart(self, part: str, version: str) -> str:
        stem = f"{self.name.stem}-{part}"
        exact = f"{stem}-{version}{_ARCHIVE}"
        if exact in self.files:
            return exact
        others = sorted(file for file in self.files if stem in file and file.endswith(_ARCHIVE))
        if not others:
            raise BadRelease(f"release {self.name.tag}: has no file {exact}")
        return others[0]

    def check_charts(self) -> None:
        """Raises BadRelease when a chart is missing."""
        self.class_chart_file  # noqa: B018 - the property raises
        self.addon_chart_file  # noqa: B018


def is_used(file: str) -> bool:
    """Reports whether a file of a release is read by any controller; others are not downloaded."""
    return file in _DOCUMENTS or (file.endswith(_ARCHIVE) and ("-cluster-class-" in file or "-cluster-addon-" in file))


def opened(name: ReleaseName, files: Mapping[str, str], read: ReadFile) -> StackRelease:
    """A release whose documents have been read. Blocking. Raises BadRelease, ReleaseMissing."""
    if METADATA not in files:
        raise BadRelease(f"release {name.tag}: has no file {METADATA}")
    documents = {file: read(file) for file in (METADATA, HASHES) if file in files}
    for file, data in documents.items():
        if data is None:
            raise ReleaseMissing(f"release {name.tag}: {file} is gone or damaged; it is downloaded again")
    versions = parse_metadata(documents[METADATA] or b"", name)
    if documents.get(HASHES) is not None:
        check_hashes(documents[HASHES] or b"", name)
    return StackRelease(name, versions, files, read)
