"""Objects of addon charts: the archive of a release opened, values templated, charts rendered as helm does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from hortus.domains.stacks.addons.config import AddonConfig, AddonConfigError, parse_config
from hortus.domains.stacks.addons.values import ValuesError, templated_values
from hortus.domains.stacks.names import ReleaseName
from hortus.domains.stacks.releases.release import VALUES, StackRelease
from hortus.kube.objects import Object
from hortus.render.archive import ArchiveError, Tree, read_archive
from hortus.render.bounded import Bounded
from hortus.render.helm import (
    Capabilities,
    ChartError,
    ChartOptions,
    ChartRenderer,
    ChartSource,
    Release,
    RenderRequest,
)

OVERWRITE: Final = "overwrite.yaml"
"""The values template in the folder of a chart."""
RELEASE: Final = Release("cluster-addon", "kube-system")
"""helm's release of every addon chart."""
_OPTIONS: Final = ChartOptions(include_crds=True)
_KEPT: Final = 64 << 20
"""Bytes of opened archives that are kept; a chart with its sub-charts is some hundred kilobytes."""


class AddonReleases(Protocol):
    """The source of releases."""

    async def fetch(self, name: ReleaseName) -> StackRelease:
        """The release, downloaded unless it is there. Raises ReleaseError."""


class ArchiveInvalid(ValueError):
    """The archive or the chart of addons cannot be opened; the message names the release and the file."""


class RenderFailed(ValueError):
    """A chart does not render; the message names the release and the chart."""


class AddonCharts(NamedTuple):
    """The addons of a release in stages: its stages, and a chart for each folder of its archive."""

    config: AddonConfig
    charts: Mapping[str, ChartSource]


class AddonRendering:
    """Renders addons. `renderer` may be shared with others."""

    def __init__(self, renderer: ChartRenderer) -> None:
        self._renderer = renderer
        self._opened: Bounded[tuple[str, str], AddonCharts] = Bounded(_KEPT, _size)

    async def staged(self, release: StackRelease) -> AddonCharts:
        """The charts of a release with stages. Raises ReleaseError, ArchiveInvalid, AddonConfigError."""
        key = (release.name.tag, str(release.revision))
        found = self._opened.get(key)
        if found is None:
            config = parse_config(await release.addon_config() or b"")
            data = await release.addon_chart()
            charts = await asyncio.to_thread(_charts, data, release)
            found = AddonCharts(config, charts)
            self._opened.put(key, found)
        return found

    async def single(self, release: StackRelease, data: Object, served: Iterable[str]) -> list[Object]:
        """The objects of the one chart of a release. Raises ReleaseError, ArchiveInvalid, ValuesError, RenderFailed."""
        values = await self.only_values(release, data)
        return await self._rendered(release, release.addon_chart_file, await self.only_chart(release), values, served)

    async def only_values(self, release: StackRelease, data: Object) -> dict[str, Any]:
        """The values of the one chart of a release. Raises ReleaseError, ValuesError."""
        template = await release.values_template()
        return await templated_values(template, data, file=VALUES) if template is not None else {}

    async def only_chart(self, release: StackRelease) -> ChartSource:
        """The one chart of a release without stages. Raises ReleaseError, ArchiveInvalid."""
        file = release.addon_chart_file
        archive = await release.addon_chart()
        try:
            return await asyncio.to_thread(ChartSource.from_archive, archive, name=file)
        except ChartError as error:
            raise ArchiveInvalid(f"release {release.name.tag}: {file}: {error}") from None

    async def chart(
        self, release: StackRelease, name: str, chart: ChartSource, data: Object | None, served: Iterable[str]
    ) -> list[Object]:
        """The objects of one chart in stages; without `data` with its own values. Raises ValuesError, RenderFailed."""
        values = await self.chart_values(name, chart, data) if data is not None else {}
        return await self._rendered(release, name, chart, values, served)

    async def chart_values(self, name: str, chart: ChartSource, data: Object) -> dict[str, Any]:
        """The values of one chart in stages. Raises ValuesError."""
        template = chart.file(OVERWRITE)
        return {} if template is None else await templated_values(template, data, file=f"{name}/{OVERWRITE}")

    async def _rendered(
        self, release: StackRelease, title: str, chart: ChartSource, values: dict[str, Any], served: Iterable[str]
    ) -> list[Object]:
        request = RenderRequest(
            chart,
            values,
            RELEASE,
            Capabilities(release.versions.kubernetes, tuple(sorted(served))),
            _OPTIONS,
        )
        try:
            rendered = await self._renderer.render(request)
        except ChartError as error:
            raise RenderFailed(f"release {release.name.tag}: {title}: {error}") from None
        # `helm template` prints hooks as well, and nothing here would run them.
        return [*rendered.objects, *(hook.object for hook in rendered.hooks)]


def _charts(data: bytes, release: StackRelease) -> dict[str, ChartSource]:
    file = release.addon_chart_file
    try:
        tree = read_archive(data)
        return {folder: _chart(tree, folder) for folder in sorted(_folders(tree))}
    except (ArchiveError, ChartError) as error:
        raise ArchiveInvalid(f"release {release.name.tag}: {file}: {error}") from None


def _folders(tree: Tree) -> set[str]:
    return {path.partition("/")[0] for path in tree.folders}


def _chart(tree: Tree, folder: str) -> ChartSource:
    return ChartSource.from_files({path: file.data for path, file in tree.below(folder).items()})


def _size(key: tuple[str, str], found: AddonCharts) -> int:
    return sum(len(data) for chart in found.charts.values() for _, data in chart.files)


__all__ = [
    "AddonCharts",
    "AddonConfigError",
    "AddonReleases",
    "AddonRendering",
    "ArchiveInvalid",
    "RenderFailed",
    "ValuesError",
]
