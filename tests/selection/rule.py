"""The tests that `make test` runs, and those that only `make test-all` runs.

The rule: **a test is left to `make test-all` if it costs more than `CHEAP` and adds less than `ADDED` for that.**

A test costs its processor time with that of all processes it starts, or the time for which it keeps a worker if that
is more, and its share of the fixtures of its file. It adds the lines of the product that no test taken before it
reaches: all cheap tests are taken first, then always the one that adds most for its cost. Both are measured, by `make
costs`, and kept in `measured.json`. A test that is not in that file is new or cheap, and runs.

Lines stand for faults: a test whose lines are all reached by cheaper ones may still find what these do not, so nothing
is dropped, and what lands has passed `make test-all`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from pathlib import Path

import msgspec
from tests.selection.costs import Spent

CHEAP = 0.5
"""Seconds up to which a test always runs."""
ADDED = 4.0
"""Lines that a test must be the first to reach, for each second that it costs."""

MEASURED = Path(__file__).parent / "measured.json"


class Cost(msgspec.Struct, array_like=True, frozen=True):
    seconds: float
    lines: int
    """Lines of the product that it is the first to reach."""


class Measured(msgspec.Struct, frozen=True):
    """`measured.json`: the seconds of each test file, and the costs of the tests that are not cheap, by node id."""

    files: dict[str, float] = {}
    tests: dict[str, Cost] = {}

    def expected(self, test: str) -> float:
        """The seconds of a test; a tenth of `CHEAP` for those whose own costs are not kept."""
        return self.tests[test].seconds if test in self.tests else CHEAP / 10


class Record(msgspec.Struct, frozen=True):
    """One test as `--record` wrote it."""

    test: str
    own: Spent
    shared: Spent
    lines: frozenset[str] = frozenset()

    @property
    def file(self) -> str:
        return self.test.partition("::")[0]


def read_measured() -> Measured:
    return msgspec.json.decode(MEASURED.read_bytes(), type=Measured) if MEASURED.exists() else Measured()


def write_measured(measured: Measured) -> None:
    """Writes it with one entry a line, so that a change of one test is a change of one line."""
    parts = []
    for name, entries in msgspec.to_builtins(measured).items():
        rows = [f" {_json(one)}: {_json(cost)}" for one, cost in entries.items()]
        parts.append(f"{_json(name)}: {{\n" + ",\n".join(rows) + "\n}")
    MEASURED.write_text("{" + ",\n".join(parts) + "}\n")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def is_selected(cost: Cost | None) -> bool:
    """Returns True if `make test` runs a test with this cost; None for one that was not measured."""
    return cost is None or cost.seconds <= CHEAP or cost.lines >= ADDED * cost.seconds


def weighed(records: Iterable[Record]) -> Measured:
    """The costs of tests that were all recorded, each with the lines that it is the first to reach."""
    known = list(records)
    seconds = _seconds(known)
    files: Counter[str] = Counter()
    reached: set[str] = set()
    waiting = []
    for number, record in enumerate(known):
        files[record.file] += seconds[record.test]  # type: ignore[assignment]
        if seconds[record.test] <= CHEAP:
            reached |= record.lines
        else:
            waiting.append((-len(record.lines) / seconds[record.test], number))
    return Measured(
        files={name: round(spent, 1) for name, spent in sorted(files.items())},
        tests=dict(sorted(_taken(known, seconds, reached, waiting))),
    )


def _seconds(records: list[Record]) -> Mapping[str, float]:
    shared: dict[str, Spent] = defaultdict(Spent)
    tests = Counter(record.file for record in records)
    for record in records:
        shared[record.file] += record.shared
    return {one.test: (one.own + shared[one.file] / tests[one.file]).cost for one in records}


def _taken(
    known: list[Record], seconds: Mapping[str, float], reached: set[str], waiting: list[tuple[float, int]]
) -> Iterable[tuple[str, Cost]]:
    # The lines that a test adds never get more while others are taken, so a test whose rank is still the best needs no
    # comparison with the rest (lazy greedy).
    heapify(waiting)
    while waiting:
        _, number = heappop(waiting)
        record = known[number]
        spent = seconds[record.test]
        added = len(record.lines - reached)
        rank = -added / spent
        if waiting and rank > waiting[0][0]:
            heappush(waiting, (rank, number))
            continue
        reached |= record.lines
        yield record.test, Cost(round(spent, 1), added)
