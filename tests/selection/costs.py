"""The cost of each test in seconds: processor time of this process and all its descendants, and time of a worker.

A fixture that several tests share counts for their file, not for the test that happened to be the first. A process that
leaves the tree of processes takes its processor time along.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Generator

import msgspec
import pytest

_TICK = os.sysconf("SC_CLK_TCK")


class Spent(msgspec.Struct, frozen=True, array_like=True):
    """Seconds."""

    processor: float = 0.0
    worker: float = 0.0

    @property
    def cost(self) -> float:
        """A test that waits keeps a worker from others, and one with processes at work the processor."""
        return max(self.processor, self.worker)

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.processor + other.processor, self.worker + other.worker)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.processor - other.processor, self.worker - other.worker)

    def __truediv__(self, parts: int) -> Spent:
        return Spent(self.processor / parts, self.worker / parts)


def _now() -> Spent:
    return Spent(processor_time(), time.monotonic())


def processor_time() -> float:
    """Returns the processor time of this process and of all that descend from it, the ended ones included."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    threads = os.listdir("/proc/self/task")  # noqa: PTH208 -- a Path for each costs as much as the rest
    own = (f"/proc/self/task/{thread}/children" for thread in threads)
    children = " ".join(map(_text, own)).split()
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(map(_alive, children))


def _alive(pid: str) -> float:
    """The time of a living process and of those that its first thread started, with their children that have ended.

    Other threads are not asked: servers in Go have dozens and start no processes, and this is called for each test.
    """
    # proc(5): the name in parentheses may hold blanks; utime, stime, cutime and cstime are fields 14 to 17.
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    children = _text(f"/proc/{pid}/task/{pid}/children").split()
    return sum(map(int, fields[11:15])) / _TICK + sum(map(_alive, children))


def _text(path: str) -> str:
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:  # the process has ended
        return ""
    try:
        return os.read(file, 1 << 16).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(file)


class Meter:
    """A plugin of pytest, in the process of the tests: adds what a test spent to its last report.

    That is `own`, and `shared` by fixtures of a wider scope: the parts of `Spent`, since reports go to another process.
    """

    def __init__(self) -> None:
        self._began = _now()
        self._shared = self._nested = Spent()
        self._called: Spent | None = None
        self._is_last = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        self._is_last = nextitem is None or nextitem.path != item.path
        self._began = _now()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        began, outer, self._nested = _now(), self._nested, Spent()
        try:
            return (yield)
        finally:
            spent = _now() - began
            self._shared += spent - self._nested
            self._nested = outer + spent

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        own = shared = Spent()
        if report.when == "call" and self._is_last:
            self._called = _now()
        if report.when == "teardown":
            now = _now()
            # The end of a file's last test is that of the fixtures which the file shares.
            shared = self._shared + (now - self._called if self._is_last and self._called else Spent())
            own = now - self._began - shared
            self._shared, self._called = Spent(), None
        report.own, report.shared = map(msgspec.to_builtins, (own, shared))  # type: ignore[attr-defined]
        return report
