"""The options of `make test` and `make test-all`, and what they add to pytest."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from pathlib import Path
from subprocess import CalledProcessError

import orjson
import pytest
from tests.selection.changes import ROOT, changed_files, reachable_tests
from tests.selection.costs import Meter
from tests.selection.progress import Progress
from tests.selection.reach import Reach
from tests.selection.rule import is_selected, read_measured

_ALLOCATIONS = 10_000
"""Allocations after which the youngest objects are looked through; 700 by default."""
_REACHABLE = pytest.StashKey[frozenset[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("selection of tests")
    group.addoption("--selected", action="store_true", help="run what adds most for its cost (tests/selection/rule.py)")
    group.addoption("--since", metavar="REVISION", help="run what the change since then can reach, by imports")
    group.addoption("--progress", action="store_true", help="lines of progress, and a table of where the time went")
    group.addoption("--record", metavar="FOLDER", help="write what each test costs and, from Python 3.12, reaches")


def pytest_configure(config: pytest.Config) -> None:
    worker = _worker(config)
    if since := config.getoption("since"):
        try:
            changed = changed_files(since)
        except CalledProcessError as error:
            raise pytest.UsageError(f"--since {since}: {error.stderr.strip()}; name a branch, tag or commit") from error
        config.stash[_REACHABLE] = reachable_tests(changed)
    runs_tests = worker or not config.getoption("numprocesses", 0)
    if runs_tests:
        config.pluginmanager.register(Meter())
        if folder := config.getoption("record"):
            config.pluginmanager.register(_Recorder(Path(folder), worker or "main"))
    if not worker and config.getoption("progress"):
        config.pluginmanager.register(Progress(config))


def _worker(config: pytest.Config) -> str:
    """The name of a process of pytest-xdist that runs tests for another, else empty."""
    return str(getattr(config, "workerinput", {}).get("workerid", ""))


def pytest_report_header(config: pytest.Config) -> list[str]:
    lines = []
    if config.getoption("selected"):
        lines.append("testing what adds most for its cost (tests/selection/rule.py); make test-all runs the rest too")
    if _REACHABLE in config.stash:
        lines.append(f"testing {len(config.stash[_REACHABLE])} files that the change can reach by imports")
    return lines


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves files unread that the change cannot reach."""
    reachable = config.stash.get(_REACHABLE, None)
    if reachable is None or collection_path.is_dir() or not collection_path.is_relative_to(ROOT):
        return None
    return str(collection_path.relative_to(ROOT)) not in reachable or None


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A change that reaches no test is no failure."""
    if _REACHABLE in session.config.stash and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    measured = read_measured()
    if config.getoption("selected"):
        kept = [item for item in items if is_selected(measured.tests.get(item.nodeid))]
        config.hook.pytest_deselected(items=[*{*items} - {*kept}])
        items[:] = kept
    # Workers take files in this order: the longest first, so that no worker is left with one at the end.
    if _worker(config):
        items.sort(key=lambda item: -measured.files.get(item.nodeid.partition("::")[0], 0.0))


def pytest_collection_finish() -> None:
    """Takes what all tests need out of the garbage collector's sight, which would walk through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 10, 10)


class _Recorder:
    """Writes one JSON line for each test."""

    def __init__(self, folder: Path, worker: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{worker}-{os.getpid()}.jsonl").open("wb")
        self._reach = Reach(folder / f"{worker}-{os.getpid()}.reach") if Reach.is_possible() else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "teardown":
            lines = sorted(self._reach.since_last()) if self._reach else []
            spent = {part: getattr(report, part) for part in ("own", "shared")}
            self._file.write(orjson.dumps({"test": item.nodeid, **spent, "lines": lines}) + b"\n")
        return report

    def pytest_unconfigure(self) -> None:
        self._file.close()
