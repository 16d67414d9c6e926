"""Charts rendered by the built-in renderer and by the helm binary, in one run.

Alone: `python -m tests.benchmarks.rendering`. Every rendering has a release name of its own, so that no cache of
results takes part; the chart itself stays the same, as in a fleet. Figures are medians in milliseconds of the whole way
from the event loop to objects and back. Those called cold, warm and helm are milliseconds of CPU: the first rendering
of a chart by a worker that runs, a later one, and a process of helm; the least of several.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.render.charts import NAMES, SMALL, example, large
from tests.render.cpu import helms, ours
from tests.render.heavy_charts import definitions, with_library
from tests.render.oracles import find_helm

from hortus.render.helm import (
    BuiltinRenderer,
    ChartError,
    ChartRenderer,
    ChartSource,
    HelmBinaryRenderer,
    Release,
    RenderRequest,
)

Figures = dict[str, float]


def _median(taken: list[float]) -> float:
    return round(statistics.median(taken) * 1000, 3)


async def _timed(action: Callable[[], Awaitable[object]]) -> float:
    begin = time.perf_counter()
    await action()
    return time.perf_counter() - begin


async def _renderings(renderer: ChartRenderer, chart: ChartSource, count: int) -> list[float]:
    taken = []
    for number in range(count + 3):
        request = RenderRequest(chart, {"turn": number}, Release(f"release-{number}"))
        taken.append(await _timed(functools.partial(renderer.render, request)))
    return taken[3:]


async def _cached(renderer: ChartRenderer, chart: ChartSource, count: int) -> list[float]:
    request = RenderRequest(chart)
    await renderer.render(request)
    return [await _timed(lambda: renderer.render(request)) for _ in range(count)]


async def _costs(helm: str) -> Figures:
    """CPU next to helm's: of the corpus, of definitions, of a library of 1,000 templates and of copies of it."""
    charts = {
        "large": [RenderRequest(ChartSource.from_files(large()))],
        "crds_5mb": [RenderRequest(ChartSource.from_files(definitions()))],
        "library": [RenderRequest(ChartSource.from_files(with_library(users=1)))],
        "library_copies": [RenderRequest(ChartSource.from_files(with_library(users=5)))],
        "corpus": await _rendered_ones(),
    }
    found: Figures = {}
    for name, requests in charts.items():
        cold, warm = await ours(requests)
        with tempfile.TemporaryDirectory() as folder:
            theirs = sum(
                helms(helm, request, Path(folder) / str(number), times=3) for number, request in enumerate(requests)
            )
        figures = {"cold_cpu_ms": cold, "warm_cpu_ms": warm, "helm_cpu_ms": theirs}
        found |= {f"{name}_{key}": round(value * 1000, 1) for key, value in figures.items()}
        found |= {f"{name}_cold_of_helm": round(cold / theirs, 2), f"{name}_warm_of_helm": round(warm / theirs, 2)}
    found["corpus_charts"] = len(charts["corpus"])
    return found


async def _rendered_ones() -> list[RenderRequest]:
    """Charts of the corpus that render by their own values."""
    found = []
    async with BuiltinRenderer() as renderer:
        for name in NAMES:
            request = RenderRequest(example(name).request().chart)
            with contextlib.suppress(ChartError):
                await renderer.render(request)
                found.append(request)
    return found


async def measure() -> Figures:
    small, big = ChartSource.from_files(SMALL), ChartSource.from_files(large())
    found: Figures = {
        "large_template_lines": sum(data.count(b"\n") for name, data in big.files if "templates/" in name)
    }
    async with BuiltinRenderer() as renderer:
        begin = time.perf_counter()
        await renderer.render(RenderRequest(small))
        found["builtin_first_ms"] = round((time.perf_counter() - begin) * 1000, 1)
        found["builtin_small_ms"] = _median(await _renderings(renderer, small, 200))
        found["builtin_large_ms"] = _median(await _renderings(renderer, big, 20))
        found["builtin_cached_ms"] = _median(await _cached(renderer, big, 200))
    helm = find_helm()
    if helm:
        async with HelmBinaryRenderer(helm) as binary:
            found["helm_small_ms"] = _median(await _renderings(binary, small, 20))
            found["helm_large_ms"] = _median(await _renderings(binary, big, 10))
        found["small_times_faster"] = round(found["helm_small_ms"] / found["builtin_small_ms"], 1)
        found["large_of_helm"] = round(found["builtin_large_ms"] / found["helm_large_ms"], 2)
        found |= await _costs(helm)
    return found


def run() -> Figures:
    """The figures, for the table of all benchmarks."""
    return asyncio.run(measure())


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
