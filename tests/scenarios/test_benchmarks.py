"""The benchmarks of docs/performance.md that begin with a server or a fleet of their own run to their end, in small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.benchmarks import credentials, fleet, replicas, runtimes

RUNS: dict[str, Callable[[], dict[str, Any]]] = {
    "credentials": lambda: credentials.run(objects=3, rounds=1, large=0),
    "fleet": lambda: fleet.run(count=3, rest=1.0),
    "replicas": lambda: replicas.run(count=10, cost=1.0),
    "runtimes": lambda: runtimes.run(count=2, rest=1.0),
}


@pytest.mark.soak
@pytest.mark.parametrize("name", RUNS)
def test_a_benchmark_has_figures_at_a_small_size(name: str) -> None:
    figures = RUNS[name]()
    assert figures
    assert all(found for found in figures.values())
