"""The display of a run of many tests: how far it is and in which folder, each failure at once, where the time went."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest
from tests.selection.costs import Spent
from tests.selection.rule import read_measured

_EVERY = 0.02
"""The part of the whole after which the next line is due."""
_PATIENCE = 15.0
"""Seconds after which the next line is due in any case."""
_MOST = 10
"""The most expensive tests that the table names."""
_PART = 0.005
"""The part of the time below which a folder is not named."""


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
        self._spent: dict[str, Spent] = defaultdict(Spent)

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
        if report.failed:
            self._counts["failed"] += 1
            self._say(f"FAILED {report.nodeid}", red=True)
        if report.when != "teardown":
            return
        self._spent[report.nodeid] = Spent(*report.own) + Spent(*report.shared)
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
        terminalreporter.section("where the time went")
        for line in self._table():
            terminalreporter.write_line(line)

    def _table(self) -> Iterator[str]:
        total = sum(self._spent.values(), Spent())
        folders: dict[str, Spent] = defaultdict(Spent)
        tests: Counter[str] = Counter()
        for test, spent in self._spent.items():
            folders[_folder(test)] += spent
            tests[_folder(test)] += 1
        named = sorted(folders, key=lambda name: -folders[name].cost)
        others = [name for name in named if folders[name].cost < _PART * total.cost]
        yield "seconds of workers, of the processor"
        for name in named:
            if name not in others:
                yield f"{_row(folders[name], total)} {tests[name]:6,} tests  {name}"
        if others:
            rest = sum((folders[name] for name in others), Spent())
            yield f"{_row(rest, total)} {sum(tests[name] for name in others):6,} tests  {len(others)} others"
        lasted = time.monotonic() - self._began
        yield f"{_row(total, total)} {len(self._spent):6,} tests, in {lasted // 60:.0f} min {lasted % 60:02.0f} s"
        yield ""
        for test in sorted(self._spent, key=lambda one: -self._spent[one].cost)[:_MOST]:
            yield f"{_row(self._spent[test], total)} {test}"


def _row(spent: Spent, total: Spent) -> str:
    pairs = ((spent.worker, total.worker), (spent.processor, total.processor))
    return " ".join(f"{one:8.1f} {one / (whole or 1.0):4.0%}" for one, whole in pairs)


def _folder(test: str) -> str:
    """The test's folder, at most three deep."""
    return "/".join(Path(test.partition("::")[0]).parent.parts[:3])
