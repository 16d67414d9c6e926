"""A chart as files and their digest: what is handed to a renderer, cached and sent to its workers."""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hortus.render.gotemplate import goyaml
from hortus.render.helm.chart import digest_of
from hortus.render.helm.errors import ChartError
from hortus.render.helm.loading import read_directory, read_packed
from hortus.render.helm.metadata import Dependency, read_metadata

Fetch = Callable[[Dependency], Awaitable[bytes]]
"""Gives the archive of a dependency by name, version or range, and repository; its supplier decides what is allowed."""


class ChartSource(msgspec.Struct, frozen=True):
    """The files of one chart, by their names below it, and a SHA-256 over all of them."""

    files: tuple[tuple[str, bytes], ...]
    digest: str

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> ChartSource:
        """A chart from memory. Raises ChartError for a name that leaves the chart."""
        for name in files:
            if name.startswith("/") or posixpath.normpath(name).startswith("..") or "\\" in name:
                raise ChartError(f"chart file {name!r} is not below the chart")
        return cls(tuple(files.items()), digest_of(list(files.items())))

    @classmethod
    def from_directory(cls, folder: Path) -> ChartSource:
        """A chart's directory. Reads the disk; call it off the event loop. Raises ChartError."""
        if not folder.is_dir():
            raise ChartError(f"no chart directory at {folder}")
        return cls.from_files(dict(read_directory(folder)))

    @classmethod
    def from_archive(cls, data: bytes, *, name: str = "archive") -> ChartSource:
        """A packed chart (.tgz). Raises ChartError."""
        return cls.from_files(dict(read_packed(data, name=name)))

    def file(self, name: str) -> bytes | None:
        return next((data for path, data in self.files if path == name), None)

    def document(self, name: str) -> Any:
        """A YAML file of the chart, None where there is none. Raises ChartError."""
        data = self.file(name)
        try:
            return None if data is None else goyaml.read(data)
        except goyaml.GoYamlError as error:
            raise ChartError(f"cannot load {name}: {error}") from None

    def missing(self) -> list[Dependency]:
        """Dependencies that Chart.yaml names and charts/ has not, with the versions that Chart.lock chose."""
        document = self.document("Chart.yaml")
        if not isinstance(document, dict):
            raise ChartError("Chart.yaml file is missing or holds no mapping")
        metadata = read_metadata(document)
        if document.get("apiVersion") in (None, "v1"):
            metadata = read_metadata(self.document("requirements.yaml"), metadata, file="requirements.yaml")
        present = self._present()
        locked = self._locked()
        wanted = [part for part in metadata.dependencies or [] if part.name not in present]
        return [msgspec.structs.replace(part, version=locked.get(part.name, part.version)) for part in wanted]

    def _present(self) -> set[str]:
        found: set[str] = set()
        for path, data in self.files:
            parts = path.split("/")
            if parts[0] != "charts" or len(parts) < 2:
                continue
            if len(parts) == 2 and path.endswith(".tgz"):
                inner = dict(read_packed(data, name=path)).get("Chart.yaml", b"")
            elif len(parts) == 3 and parts[2] == "Chart.yaml":
                inner = data
            else:
                continue
            found.add(str((goyaml.read(inner) or {}).get("name", "")))
        return found

    def _locked(self) -> dict[str, str]:
        document = self.document("Chart.lock") or self.document("requirements.lock")
        entries = document.get("dependencies") if isinstance(document, dict) else None
        return {
            str(entry["name"]): str(entry.get("version", ""))
            for entry in entries or []
            if isinstance(entry, dict) and "name" in entry
        }

    async def completed(self, fetch: Fetch) -> ChartSource:
        """The chart with its missing dependencies fetched into charts/. Raises ChartError, and what `fetch` raises."""
        files = dict(self.files)
        for part in self.missing():
            if "/" in part.name or part.name in ("", ".", ".."):
                raise ChartError(f"dependency {part.name!r} has no usable name")
            files[f"charts/{part.name}-fetched.tgz"] = await fetch(part)
        return ChartSource.from_files(files)
