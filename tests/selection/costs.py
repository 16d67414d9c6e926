"""The processor time of each test: this process and all its descendants, in seconds.

A fixture that several tests share counts for their file, not for the test that happened to be the first. A process that
leaves the tree of processes takes its time along.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

_TICK = os.sysconf("SC_CLK_TCK")


def processor_time() -> float:
    """Returns the processor time of this process and of all that descend from it, the ended ones included."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(_alive(os.getpid()))


def _alive(pid: int) -> Iterator[float]:
    """Yields the time of each living descendant, with that of its own children that have ended."""
    for task in _tasks(pid):
        for child in _text(task / "children").split():
            # proc(5): the name in parentheses may hold blanks; utime, stime, cutime and cstime are fields 14 to 17.
            fields = _text(Path(f"/proc/{child}/stat")).rpartition(")")[2].split()
            yield sum(map(int, fields[11:15])) / _TICK
            yield from _alive(int(child))


def _tasks(pid: int) -> list[Path]:
    with suppress(OSError):  # the process has ended
        return list(Path(f"/proc/{pid}/task").iterdir())
    return []


def _text(path: Path) -> str:
    with suppress(OSError):  # the process has ended
        return path.read_text()
    return ""


class Meter:
    """A plugin of pytest, in the process of the tests: adds `own` and `shared` seconds to the report of each phase.

    `shared` is what fixtures of a wider scope than the test took.
    """

    def __init__(self) -> None:
        self._began = 0.0
        self._shared = 0.0
        self._nested = 0.0
        self._is_last = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        self._began = processor_time()
        self._is_last = nextitem is None or nextitem.path != item.path
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        began, outer, self._nested = processor_time(), self._nested, 0.0
        try:
            return (yield)
        finally:
            spent = processor_time() - began
            self._shared += spent - self._nested
            self._nested = outer + spent

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = processor_time()
        spent = now - self._began
        shared = spent if call.when == "teardown" and self._is_last else self._shared
        self._began, self._shared = now, 0.0
        report.own, report.shared = spent - shared, shared  # type: ignore[attr-defined]
        return report
