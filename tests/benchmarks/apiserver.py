"""The API server of `hortus up` under load: TLS, SQLite with durable writes, callers in a process of their own.

Rates are of 16 callers on keep-alive connections, one request in flight each. `cpu_ms` is the server's processor time
per request: on a shared machine it says more than a rate does. `run()` takes about 40 seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.credentials import server
from tests.benchmarks.fleet import cpu_seconds, resident_mib

from hortus.cli.up.state import StateDirectory

_ROOT = Path(__file__).resolve().parents[2]
CALLERS, WATCHERS, WATCHES = 16, 100, 2_000

Figures = dict[str, dict[str, float]]


@contextmanager
def load(
    kubeconfig: Path, work: str, count: int, *, module: str = "callers", **options: Any
) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])}
    command = [sys.executable, "-m", f"tests.benchmarks.load.{module}"]
    asked = {"kubeconfig": str(kubeconfig), "work": work, "count": count, **options}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, cwd=_ROOT, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdin is not None
        child.stdin.write(json.dumps(asked) + "\n")
        child.stdin.flush()
        yield child


def figures_of(child: subprocess.Popen[str]) -> dict[str, float]:
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise RuntimeError("the load failed; its error output says why")
    found: dict[str, float] = json.loads(line)
    return found


def measured(kubeconfig: Path, pid: int, work: str, count: int, **options: Any) -> dict[str, float]:
    """The load's own figures with the server's CPU per request."""
    before = cpu_seconds(pid)
    with load(kubeconfig, work, count, **options) as child:
        figures = figures_of(child)
    return {**figures, "cpu_ms": (cpu_seconds(pid) - before) / count * 1000}


def ready(folder: Path) -> float:
    """Seconds from starting the process to its first answer's being possible."""
    began = time.perf_counter()
    with server(folder):
        return time.perf_counter() - began


def _make_namespace(kubeconfig: Path) -> None:
    with load(kubeconfig, "create_namespace", 1, callers=1) as child:
        figures_of(child)


def requests(count: int) -> Figures:
    """Throughput, list and fan-out on one server, and its memory meanwhile."""
    with tempfile.TemporaryDirectory(dir=_ROOT, prefix=".bench-") as name, server(Path(name)) as (kubeconfig, pid):
        _make_namespace(kubeconfig)
        figures: Figures = {"memory": {"empty_mib": resident_mib(pid)}}
        figures["create"] = measured(kubeconfig, pid, "create", 5_000, callers=CALLERS)
        figures["list_5000"] = measured(kubeconfig, pid, "list", 20)
        more = measured(kubeconfig, pid, "create", 5_000, callers=CALLERS, prefix="b")
        figures["create"] = min(figures["create"], more, key=lambda each: each["cpu_ms"])
        figures["memory"]["10000_objects_mib"] = resident_mib(pid)
        figures["get"] = measured(kubeconfig, pid, "get", 2 * count, callers=CALLERS)
        measured(kubeconfig, pid, "apply", 1_000, callers=CALLERS, prefix="applied")
        figures["apply"] = measured(kubeconfig, pid, "apply", count, callers=CALLERS, prefix="applied")
        measured(kubeconfig, pid, "create_custom", 500, callers=CALLERS)
        figures["status_patch"] = measured(kubeconfig, pid, "status", count, callers=CALLERS)
        figures["fan_out_100"] = measured(kubeconfig, pid, "fan_out", 100, watchers=WATCHERS)
        figures["memory"]["after_all_mib"] = resident_mib(pid)
    return figures


def clusters(count: int, watches: int) -> dict[str, float]:
    """Memory of many logical clusters with twenty objects each, and of watches on them."""
    with tempfile.TemporaryDirectory(dir=_ROOT, prefix=".bench-") as name, server(Path(name)) as (_, pid):
        token = StateDirectory(Path(name)).simulation_kubeconfig
        created = measured(token, pid, "create_cluster", count)
        empty = resident_mib(pid)
        filled = measured(token, pid, "fill_cluster", count * 20)
        full = resident_mib(pid)
        with load(token, "hold_watches", watches) as child:
            figures_of(child)
            watched = resident_mib(pid)
            child.communicate()
    return {
        "clusters_per_s": created["per_s"],
        "empty_mib": empty,
        "creates_per_s": filled["per_s"],
        "filled_mib": full,
        "with_watches_mib": watched,
    }


def run(*, count: int = 5_000, logical: int = 5_000) -> Figures:
    with tempfile.TemporaryDirectory(dir=_ROOT, prefix=".bench-") as name:
        ready(Path(name) / "bytecode")
        empty = median(ready(Path(name) / str(number)) for number in range(5))
        again = median(ready(Path(name) / str(number)) for number in range(5))
    figures: Figures = {"ready": {"empty_s": empty, "again_s": again}}
    figures["load_average"] = {"before": os.getloadavg()[0]}
    figures.update(requests(count))
    if logical:
        figures[f"{logical}_clusters"] = clusters(logical, min(WATCHES, logical))
    figures["load_average"]["after"] = os.getloadavg()[0]
    return figures


if __name__ == "__main__":
    print(json.dumps(run(logical=int(sys.argv[1]) if len(sys.argv) > 1 else 5_000), indent=2))
