"""Claims about the cost of a rendering, compared with helm."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.render.charts import large
from tests.render.cpu import helms, ours
from tests.render.heavy_charts import Files, definitions, with_library

from hortus.render.helm import ChartSource, RenderRequest


@pytest.mark.oracle
@pytest.mark.parametrize(
    "files",
    [large(), definitions(1 << 20), with_library(users=1), with_library(users=5)],
    ids=["large", "definitions", "library", "copies of a library"],
)
async def test_the_first_rendering_of_a_chart_costs_at_most_twice_the_cpu_of_helm(
    files: Files, helm: str, tmp_path: Path
) -> None:
    request = RenderRequest(ChartSource.from_files(files))
    cold, warm = await ours([request])
    assert cold < 2 * helms(helm, request, tmp_path)
    assert warm < 1.1 * cold
