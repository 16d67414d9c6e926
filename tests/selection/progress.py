"""The display of a run of many tests: how far it is and in which folder, each failure at once, where the time went."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest
from tests.selection.rule import read_measured

_EVERY = 0.02
"""The part of the whole after which the next line is due."""
_PATIENCE = 15.0
"""Seconds after which the next line is due in any case."""
_MOST = 10
"""The most expensive tests that the table names."""
_PART = 0.005
"""The part of the processor time below which a folder is not named."""


class Progress:
    """A plugin of pytest, in the process that reports: lines of progress in place of dots, and a table at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began = time.monotonic()
        self._all = 0
        self._cost = 0.0
        self._done = 0.0
        self._shown = self._began, 0.0
        self._measured = read_measured()
        self._counts: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._expect([item.nodeid for item in session.items])

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._expect(ids)

    def _expect(self, tests: Sequence[str]) -> None:
        self._all, self._cost = len(tests), sum(map(self._measured.expected, tests))

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, tuple[str, object, object], tuple[str, str, str]]:
        """Returns no letter for any test: the lines of progress say it."""
        category, _, _ = yield
        return category, "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.own + report.shared
        if report.failed:
            self._counts["failed"] += 1
            self._say(f"FAILED {report.nodeid}", red=True)
        if report.when != "teardown":
            return
        self._counts["done"] += 1
        self._done += self._measured.expected(report.nodeid)
        now, part = time.monotonic(), self._done / (self._cost or 1.0)
        shown, shown_part = self._shown
        if part >= shown_part + _EVERY or now >= shown + _PATIENCE or self._counts["done"] == self._all:
            self._shown = now, part
            failed = f", {self._counts['failed']} failed" if self._counts["failed"] else ""
            spent = now - self._began
            # By expected costs: the few most expensive tests come first.
            self._say(
                f"{part:4.0%} {spent // 60:3.0f} min {spent % 60:02.0f} s  {self._counts['done']:>6,} of "
                f"{self._all:,} tests{failed}  {Path(report.nodeid.partition('::')[0]).parent}"
            )

    def _say(self, line: str, *, red: bool = False) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        terminal.ensure_newline()
        terminal.write_line(line, red=red)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._counts["done"] < 100:
            return
        terminalreporter.section("where the processor time went")
        for line in self._table():
            terminalreporter.write_line(line)

    def _table(self) -> Iterator[str]:
        total = sum(self._seconds.values()) or 1.0
        folders: Counter[str] = Counter()
        tests: Counter[str] = Counter()
        for test, seconds in self._seconds.items():
            name = _folder(test)
            folders[name] += seconds  # type: ignore[assignment]
            tests[name] += 1
        yield f"{'seconds':>8} {'':>5} {'tests':>6}  folder"
        named = [(name, seconds) for name, seconds in folders.most_common() if seconds >= _PART * total]
        for name, seconds in named:
            yield f"{seconds:8.1f} {seconds / total:5.0%} {tests[name]:6,}  {name}"
        rest = folders.keys() - dict(named).keys()
        if rest:
            seconds = sum(folders[name] for name in rest)
            yield f"{seconds:8.1f} {seconds / total:5.0%} {sum(tests[name] for name in rest):6,}  {len(rest)} others"
        spent = time.monotonic() - self._began
        yield f"{total:8.1f}  100% {len(self._seconds):6,}  all, in {spent // 60:.0f} min {spent % 60:02.0f} s"
        yield ""
        for test, seconds in self._seconds.most_common(_MOST):
            yield f"{seconds:8.1f}  {test}"


def _folder(test: str) -> str:
    """The test's folder, at most three deep."""
    return "/".join(Path(test.partition("::")[0]).parent.parts[:3])
