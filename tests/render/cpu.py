"""The CPU time of renderings: of a worker of ours for the first time and again, and of helm as a process."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

from tests.render.charts import SMALL

from hortus.render.helm import BuiltinRenderer, ChartSource, PoolSettings, Release, RenderRequest


async def ours(requests: list[RenderRequest], *, times: int = 3) -> tuple[float, float]:
    """Cold and warm of all requests together, the least of several fresh workers."""
    found = []
    for _ in range(times):
        async with BuiltinRenderer(PoolSettings(workers=1)) as renderer:
            await renderer.render(RenderRequest(ChartSource.from_files(SMALL)))
            begin = _worker_cpu(renderer)
            for request in requests:
                await renderer.render(request)
            middle = _worker_cpu(renderer)
            for request in requests:
                again = RenderRequest(request.chart, request.values, Release("another", request.release.namespace))
                await renderer.render(again)
            found.append((middle - begin, _worker_cpu(renderer) - middle))
    return min(cold for cold, _ in found), min(warm for _, warm in found)


def _worker_cpu(renderer: BuiltinRenderer) -> float:
    process = renderer._pool._idle[0]._process
    assert process is not None
    # Nanoseconds on a CPU, of each thread: the ticks of `stat` are too coarse for one rendering.
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def helms(helm: str, request: RenderRequest, folder: Path, *, times: int = 3) -> float:
    """The least CPU of several `helm template` of the chart, unpacked."""
    for name, data in request.chart.files:
        if name == ".helmignore":
            # The files are those that were not ignored.
            continue
        target = folder / "chart" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    command = [helm, "template", "release", str(folder / "chart"), "--kube-version", "v1.34.0"]
    found = []
    for _ in range(times):
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime)
    return min(found)
