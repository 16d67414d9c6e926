"""Claims about whole charts: what the built-in renderer gives is what the real helm gives, text, objects and order."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.render.charts import NAMES, SMALL, example, large

from hortus.render.helm import (
    BuiltinRenderer,
    ChartError,
    ChartRenderer,
    ChartSource,
    HelmBinaryRenderer,
    Release,
    Rendered,
    RenderRequest,
    load_files,
    render_chart,
)


@pytest.fixture
async def binary(helm: str) -> AsyncIterator[HelmBinaryRenderer]:
    async with HelmBinaryRenderer(helm) as renderer:
        yield renderer


async def outcome(renderer: ChartRenderer, request: RenderRequest) -> Rendered | None:
    try:
        return await renderer.render(request)
    except ChartError as error:
        assert str(error)
        return None


def here(request: RenderRequest) -> Rendered | None:
    try:
        return render_chart(
            load_files(request.chart.files),
            request.values,
            release=request.release,
            capabilities=request.capabilities,
            options=request.options,
        )
    except ChartError as error:
        assert str(error)
        return None


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
async def test_a_chart_of_the_corpus_renders_as_with_the_real_helm(name: str, binary: HelmBinaryRenderer) -> None:
    request = example(name).request()
    assert here(request) == await outcome(binary, request)


@pytest.mark.oracle
@pytest.mark.parametrize("files", [SMALL, large(3)], ids=["small", "large"])
async def test_made_charts_render_as_with_the_real_helm(files: dict[str, bytes], binary: HelmBinaryRenderer) -> None:
    request = RenderRequest(ChartSource.from_files(files))
    found = here(request)
    assert found is not None
    assert found == await outcome(binary, request)


def _charts_below(folder: Path) -> list[Path]:
    directories = {path.parent for path in folder.rglob("Chart.yaml")}
    return sorted(directories) + sorted(folder.rglob("*.tgz"))


@pytest.mark.oracle
async def test_the_charts_of_the_go_systems_render_as_with_the_real_helm(
    upstream: Path, binary: HelmBinaryRenderer
) -> None:
    paths = _charts_below(upstream / "cso")
    assert len(paths) >= 10
    for path in paths:
        data = path.read_bytes() if path.is_file() else b""
        chart = ChartSource.from_archive(data) if data else ChartSource.from_directory(path)
        request = RenderRequest(chart, {}, Release("docker-ferrol-1-27", "cluster"))
        assert here(request) == await outcome(binary, request), path


async def test_the_pool_gives_what_rendering_here_gives() -> None:
    async with BuiltinRenderer() as renderer:
        requests = [example(name).request() for name in NAMES if not name.startswith("bad-")]
        found = await asyncio.gather(*(outcome(renderer, request) for request in requests))
    assert found == [here(request) for request in requests]


@pytest.mark.oracle
async def test_a_packed_subchart_is_a_subchart(binary: HelmBinaryRenderer) -> None:
    parent = example("subchart")
    inside = {name: data for name, data in parent.files.items() if name.startswith("charts/child/")}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in inside.items():
            entry = tarfile.TarInfo(name.removeprefix("charts/"))
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    files = {name: data for name, data in parent.files.items() if name not in inside}
    files["charts/child-0.1.0.tgz"] = packed.getvalue()
    request = RenderRequest(ChartSource.from_files(files), parent.values)
    found = here(request)
    assert found == await outcome(binary, request)
    whole = here(RenderRequest(ChartSource.from_files(parent.files), parent.values))
    assert found is not None and whole is not None and found.objects == whole.objects
