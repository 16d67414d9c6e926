"""A chart in memory: templates, files, default values, and the charts below it."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

from hortus.render.helm.metadata import Dependency, Metadata

_MANIFESTS = (".yaml", ".yml", ".json")


class Chart:
    """One chart. `digest` differs between charts of different content, subcharts included."""

    __slots__ = ("dependencies", "digest", "files", "metadata", "parent", "schema", "templates", "values")

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.templates: list[tuple[str, str]] = []
        """Names below the chart and texts."""
        self.files: list[tuple[str, bytes]] = []
        self.values: dict[str, Any] = {}
        self.schema: bytes | None = None
        self.dependencies: list[Chart] = []
        self.parent: Chart | None = None
        self.digest = ""

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def full_path(self) -> str:
        """`parent/charts/child`."""
        return f"{self.parent.full_path}/charts/{self.name}" if self.parent else self.name

    @property
    def is_library(self) -> bool:
        return self.metadata.type.lower() == "library"

    def adopt(self, charts: list[Chart]) -> None:
        """Make these the dependencies."""
        for chart in charts:
            chart.parent = self
        self.dependencies = charts

    def renamed(self, name: str) -> Chart:
        """The same chart under an alias. What it holds is shared, as in Helm."""
        found = copy.copy(self)
        found.metadata = copy.copy(self.metadata)
        if name:
            found.metadata.name = name
        return found

    def fresh(self) -> Chart:
        """A copy whose structure may change without changing this one; values and texts are shared."""
        found = copy.copy(self)
        found.metadata = copy.copy(self.metadata)
        if found.metadata.dependencies is not None:
            found.metadata.dependencies = [_copied(part) for part in found.metadata.dependencies]
        found.adopt([chart.fresh() for chart in self.dependencies])
        return found

    def crds(self) -> list[tuple[str, bytes]]:
        """Files of crds/ with their full names, those of subcharts after the chart's own."""
        own = [
            (f"{self.full_path}/{name}", data)
            for name, data in self.files
            if name.startswith("crds/") and name.lower().endswith(_MANIFESTS)
        ]
        return own + [crd for chart in self.dependencies for crd in chart.crds()]


def _copied(part: Dependency) -> Dependency:
    found = copy.copy(part)
    found.import_values = list(part.import_values)
    return found


def digest_of(files: list[tuple[str, bytes]]) -> str:
    """SHA-256 over names and contents, in the order of names."""
    found = hashlib.sha256()
    for name, data in sorted(files):
        found.update(f"{len(name.encode())}:{len(data)}:".encode())
        found.update(name.encode())
        found.update(data)
    return found.hexdigest()
