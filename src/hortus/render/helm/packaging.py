"""Packing charts as `helm package` does, the same bytes for the same files.

Helm writes Chart.yaml again from what it understands of it: known keys alone, sorted, without comments. The rest of a
chart is packed as it is, but for the files that .helmignore names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hortus.render.archive import Tree, pack_tgz
from hortus.render.gotemplate import goyaml
from hortus.render.helm.errors import ChartError
from hortus.render.helm.ignore import IgnoreRules
from hortus.render.helm.loading import load_files
from hortus.render.helm.source import ChartSource

_CHART = "Chart.yaml"
_IGNORE = ".helmignore"
_KNOWN = frozenset(
    (
        *("name", "home", "sources", "version", "description", "keywords", "maintainers", "icon", "apiVersion"),
        *("condition", "tags", "appVersion", "deprecated", "annotations", "kubeVersion", "dependencies", "type"),
    )
)
"""The keys of Chart.yaml that Helm keeps (helm.sh/helm/v3/pkg/chart, Metadata)."""


class ChartPackage(msgspec.Struct, frozen=True):
    """A packed chart."""

    name: str
    version: str
    archive: bytes


def package_chart(chart: Tree, *, version: str) -> ChartPackage:
    """Pack a chart with `version` in its Chart.yaml. Raises ChartError, also for missing dependencies."""
    document = _chart_document(chart)
    kept = {key: value for key, value in (document | {"version": version}).items() if key in _KNOWN}
    files = {path: chart[path].data for path in _included(chart)} | {_CHART: goyaml.write(kept).encode()}
    loaded = load_files(files.items())
    if missing := ChartSource.from_files(files).missing():
        wanted = ", ".join(sorted(f"{one.name} {one.version}" for one in missing))
        raise ChartError(f"charts/ lacks the dependencies {wanted}; run `helm dependency build` in the chart's folder")
    name = loaded.metadata.name
    return ChartPackage(name, loaded.metadata.version, pack_tgz(Tree(files), prefix=name))


def _included(chart: Tree) -> Iterator[str]:
    rules = IgnoreRules(chart[_IGNORE].data.decode("utf-8", "replace") if _IGNORE in chart else "")
    for path in chart:
        parts = path.split("/")
        folders = ("/".join(parts[:end]) for end in range(1, len(parts)))
        if not any(rules.ignores(folder, is_directory=True) for folder in folders) and not rules.ignores(
            path, is_directory=False
        ):
            yield path


def _chart_document(chart: Tree) -> dict[str, Any]:
    if _CHART not in chart:
        raise ChartError(f"has no {_CHART}; make the folder a Helm chart")
    try:
        document = goyaml.read(chart[_CHART].data)
    except goyaml.GoYamlError as error:
        raise ChartError(f"{_CHART}: {error}") from None
    if not isinstance(document, dict):
        raise ChartError(f"{_CHART}: is not a mapping of keys; write apiVersion, name and version")
    return document
