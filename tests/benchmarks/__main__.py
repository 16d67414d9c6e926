"""`make bench`: all benchmarks as tables and as JSON (`bench.json`); with names, as `store fleet`, only those.

Figures are medians or totals as each module says. Compare ratios from one run, never figures of two machines.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import platform
import sys
import time
from pathlib import Path
from typing import Any

import tests.benchmarks as package
from rich.console import Console
from rich.table import Table

_ROOT = Path(__file__).resolve().parents[2]
_NOT_ONE = ("__main__",)


def benchmarks() -> list[str]:
    """The modules next to this one that have a `run`."""
    found = [module.name for module in pkgutil.iter_modules(package.__path__) if not module.ispkg]
    return sorted(name for name in found if name not in _NOT_ONE)


def table_of(title: str, figures: dict[str, Any]) -> Table:
    """Figures by subject, or without subjects where a benchmark has only one."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("what")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for subject, found in figures.items():
        for name, value in found.items() if isinstance(found, dict) else [("", found)]:
            table.add_row(subject, name, _shown(value))
    return table


def _shown(value: object) -> str:
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:,.3g}" if isinstance(value, float) and value < 100 else f"{value:,.0f}"


def main(names: list[str]) -> None:
    console = Console(width=110)
    unknown = sorted(set(names) - set(benchmarks()))
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are: {', '.join(benchmarks())}")
    results: dict[str, Any] = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
    }
    for name in names or benchmarks():
        began = time.perf_counter()
        module = importlib.import_module(f"tests.benchmarks.{name}")
        results[name] = figures = module.run()
        if hasattr(module, "markdown"):
            print(f"{name}\n\n{module.markdown(figures)}\n")  # to be pasted into the documentation
        else:
            console.print(table_of(name, figures))
        console.print(f"[dim]{time.perf_counter() - began:.0f} s[/]\n")
    (_ROOT / "bench.json").write_text(json.dumps(results, indent=2) + "\n")
    console.print("written: bench.json")


if __name__ == "__main__":
    main(sys.argv[1:])
