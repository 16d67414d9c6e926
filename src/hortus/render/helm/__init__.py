"""Helm charts to objects, the same here as from the real helm.

    async with BuiltinRenderer() as renderer:
        chart = ChartSource.from_archive(data)
        rendered = await renderer.render(RenderRequest(chart, values, Release("web", "shop")))
        rendered.objects    # in the order of installation; rendered.hooks are apart

- `ChartSource`: a chart's files and digest; from a directory, an archive, memory; `completed` fetches dependencies.
- `ChartRenderer`: the interface. `BuiltinRenderer` needs no binary; `HelmBinaryRenderer` runs `helm template`.
- `render_chart`: the same as the built-in renderer here and now, in this process; for commands and tests.
- `package_chart`: the archive that `helm package` makes.
- Everything that goes wrong with a chart is a `ChartError`.
"""

from __future__ import annotations

from hortus.render.helm.binary import HelmBinaryRenderer
from hortus.render.helm.builtin import ChartOptions, Release, render_chart
from hortus.render.helm.cache import RenderCache
from hortus.render.helm.capabilities import Capabilities
from hortus.render.helm.chart import Chart
from hortus.render.helm.coalescing import merged_values
from hortus.render.helm.errors import ChartError, RenderTimeout
from hortus.render.helm.loading import load_archive, load_chart, load_files
from hortus.render.helm.manifests import Hook, Rendered
from hortus.render.helm.metadata import Dependency
from hortus.render.helm.packaging import ChartPackage, package_chart
from hortus.render.helm.pool import PoolSettings, Reader
from hortus.render.helm.renderer import BuiltinRenderer, ChartRenderer, RenderCounts, RenderRequest
from hortus.render.helm.source import ChartSource, Fetch

__all__ = [
    "BuiltinRenderer",
    "Capabilities",
    "Chart",
    "ChartError",
    "ChartOptions",
    "ChartPackage",
    "ChartRenderer",
    "ChartSource",
    "Dependency",
    "Fetch",
    "HelmBinaryRenderer",
    "Hook",
    "PoolSettings",
    "Reader",
    "Release",
    "RenderCache",
    "RenderCounts",
    "RenderRequest",
    "RenderTimeout",
    "Rendered",
    "load_archive",
    "load_chart",
    "load_files",
    "merged_values",
    "package_chart",
    "render_chart",
]
