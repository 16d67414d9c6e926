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
    cold = warm = theirs = float("inf")
    for _ in range(5):
        # The least of each is what it costs: whatever else the machine does makes it dearer.
        first, again = await ours([request])
        cold, warm, theirs = min(cold, first), min(warm, again), min(theirs, helms(helm, request, tmp_path))
        if cold < 2 * theirs and warm < 1.1 * cold:
            return
    pytest.fail(f"{cold:.3f} s the first time, {warm:.3f} s again, {theirs:.3f} s by helm")
