"""What `make test` and `make test-all` add to pytest."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import orjson
import pytest
from tests.selection.costs import Meter
from tests.selection.reach import Reach


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("selection")
    group.addoption("--record", metavar="FOLDER", help="write what each test costs and, from Python 3.12, reaches")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Meter(), "meter")
    folder = config.getoption("record")
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if folder and (worker or not config.getoption("numprocesses", 0)):
        config.pluginmanager.register(Recorder(Path(folder), worker or "main"))


class Recorder:
    def __init__(self, folder: Path, worker: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{worker}-{os.getpid()}.jsonl").open("wb")
        self._reach = Reach(folder / f"{worker}-{os.getpid()}.d")
        self._sums: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        self._sums["own"] += report.own
        self._sums["shared"] += report.shared
        self._sums["wall"] += report.duration
        if report.when == "teardown":
            row = {"test": item.nodeid, **self._sums, "lines": sorted(self._reach.since_last())}
            self._file.write(orjson.dumps(row) + b"\n")
            self._sums.clear()
        return report

    def pytest_unconfigure(self) -> None:
        self._file.close()
