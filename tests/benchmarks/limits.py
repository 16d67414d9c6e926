"""Runtimes under limits: how the controllers do with less processor time, and the memory they need.

For each number of Runtimes and each limit a `hortus up` of its own runs `examples/scenarios/runtimes-N.yaml`; then it
is left alone, and its controllers are started again. The limit is kept as the kernel keeps that of a container, by
periods of 100 ms, but by signals (SIGSTOP, SIGCONT), so that no privilege is needed. Memory is measured, not limited:
`VmHWM`, of which a limit of memory is an upper bound.

    python -m tests.benchmarks.limits --runtimes 100 1000 --cpu 0 0.5 0.25
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.fleet import PATIENCE, Figures, cpu_seconds, peak_mib
from tests.benchmarks.runtimes import running

from hortus.cli.up.state import StateDirectory

_ROOT = Path(__file__).resolve().parents[2]
_PERIOD = 0.1
"""Seconds; `cpu.cfs_period_us` of the kernel."""
_LOOK = 0.005
_CALM = 0.05
"""Cores; a controller that uses less than that has nothing to do."""


@contextmanager
def limited(state: StateDirectory, cores: float) -> Iterator[None]:
    """Holds the controllers to `cores` cores; 0 is no limit."""
    if not cores:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_hold, args=(state, cores, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _hold(state: StateDirectory, cores: float, over: threading.Event) -> None:
    """Limit CPU as the kernel does: unused time is lost at the end of a period, time beyond the limit is paid back."""
    while not over.is_set():
        try:
            _hold_one(_controllers(state), cores, over)
        except (OSError, LookupError):
            over.wait(_PERIOD)  # they are just being started again


def _hold_one(pid: int, cores: float, over: threading.Event) -> None:
    used, at, budget, stopped = cpu_seconds(pid), time.monotonic(), cores * _PERIOD, False
    try:
        while not over.wait(_LOOK):
            before, then = used, at
            used, at = cpu_seconds(pid), time.monotonic()
            budget = min(budget + cores * (at - then), cores * _PERIOD) - (used - before)
            if stopped is not (budget < 0):
                stopped = budget < 0
                os.kill(pid, signal.SIGSTOP if stopped else signal.SIGCONT)
    finally:
        if stopped:
            os.kill(pid, signal.SIGCONT)


def _controllers(state: StateDirectory) -> int:
    """Their process. Raises LookupError while there is none."""
    run = state.run()
    assert run is not None, "hortus up has ended"
    return run.processes["controllers"]


def measure(count: int, cores: float, rest: float) -> Figures:
    """One fleet, from its begin to its end."""
    with tempfile.TemporaryDirectory(dir=_ROOT, prefix=".bench-") as scratch:
        folder = Path(scratch)
        state = StateDirectory(folder / "state")
        with running(folder, _ROOT / "examples/up-load.yaml"), limited(state, cores):
            before = os.getloadavg()[0]
            report = _simulated(state, count)
            pid = _controllers(state)
            peak, used = peak_mib(pid), report["processes"]["controllers"]["cpu"]
            _until_calm(state)
            spent = cpu_seconds(pid)
            time.sleep(rest)
            resting = (cpu_seconds(pid) - spent) / rest
            return {
                "runtimes": count,
                "limit_cores": cores,
                "load_of_the_machine_before": before,
                "ready": report["ready"],
                "failures": report["failed"],
                "seconds": report["busy"],
                "time_to_ready_p50": report["waits"]["time_to_ready"]["p50"],
                "time_to_ready_p99": report["waits"]["time_to_ready"]["p99"],
                "queue_time_p99": report["queue_time"].get("p99", 0.0),
                "controllers_cpu_ms_per_runtime": used / count * 1000,
                "controllers_peak_mib": peak,
                "controllers_percent_of_a_core_at_rest": resting * 100,
                **_restarted(state),
            }


def _simulated(state: StateDirectory, count: int) -> dict[str, Any]:
    scenario = _ROOT / "examples/scenarios" / f"runtimes-{count}.yaml"
    command = [sys.executable, "-m", "hortus", "--state-dir", str(state.path), "simulate", "run", str(scenario)]
    done = subprocess.run([*command, "--quiet", "-o", "json"], stdout=subprocess.PIPE, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _restarted(state: StateDirectory) -> Figures:
    """The controllers end in good order and are started by their supervisor; until they have nothing to do."""
    before, began = _controllers(state), time.monotonic()
    os.kill(before, signal.SIGTERM)
    while not _started(state, before):
        assert time.monotonic() < began + PATIENCE
        time.sleep(_PERIOD)
    seconds = _until_calm(state)
    pid = _controllers(state)
    return {
        "restart_seconds": time.monotonic() - began - seconds,
        "restart_cpu_seconds": cpu_seconds(pid),
        "restart_peak_mib": peak_mib(pid),
    }


def _started(state: StateDirectory, before: int) -> bool:
    try:
        return _controllers(state) != before
    except LookupError:
        return False


def _until_calm(state: StateDirectory) -> float:
    """Waits until the controllers used hardly any processor time for some seconds, and returns how many that are."""
    window, pid, began = 5.0, _controllers(state), time.monotonic()
    before = -1.0
    while before < 0 or cpu_seconds(pid) - before > _CALM * window:
        assert time.monotonic() < began + PATIENCE
        before = cpu_seconds(pid)
        time.sleep(window)
    return window


_ROWS = (
    ("machine's load before", "load_of_the_machine_before", ".1f"),
    ("failures", "failures", ".0f"),
    ("all Ready after, s", "seconds", ".0f"),
    ("time to ready: median, s", "time_to_ready_p50", ".1f"),
    ("time to ready: 99th percentile, s", "time_to_ready_p99", ".1f"),
    ("queue time: 99th percentile, s", "queue_time_p99", ".2f"),
    ("processor time for a Runtime, ms", "controllers_cpu_ms_per_runtime", ".0f"),
    ("memory at the peak, MiB", "controllers_peak_mib", ".0f"),
    ("at rest, % of a core", "controllers_percent_of_a_core_at_rest", ".1f"),
    ("restart: until at rest, s", "restart_seconds", ".0f"),
    ("restart: processor time, s", "restart_cpu_seconds", ".1f"),
    ("restart: memory at the peak, MiB", "restart_peak_mib", ".0f"),
)


def markdown(figures: dict[str, Figures]) -> str:
    """A column for each run."""
    lines = [f"| Runtimes, limit | {' | '.join(figures)} |", "|---|" + "---:|" * len(figures)]
    lines += [
        f"| {title} | {' | '.join(format(one[key], how) for one in figures.values())} |" for title, key, how in _ROWS
    ]
    return "\n".join(lines)


def run(
    *, counts: Sequence[int] = (100,), limits: Sequence[float] = (0.0, 0.5), rest: float = 30.0
) -> dict[str, Figures]:
    return {
        f"{count:,}, {f'{cores * 1000:.0f}m' if cores else 'none'}": measure(count, cores, rest)
        for count in counts
        for cores in limits
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtimes", type=int, nargs="+", default=[100], choices=[100, 1000, 5000])
    parser.add_argument("--cpu", type=float, nargs="+", default=[0.0, 0.5])
    parser.add_argument("--rest", type=float, default=30.0)
    given = parser.parse_args()
    print(markdown(run(counts=given.runtimes, limits=given.cpu, rest=given.rest)))
